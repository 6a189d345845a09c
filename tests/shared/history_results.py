"""Results folders as asv and a history run leave them, without either."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from device_runner.device import Identity
from harness.base.outcome import Outcome
from harness.judge.history.results import CODES, LATENCY, OUTCOME
from harness.measure.records.record import Record

IDENTITY = Identity("virtual", "emulator", gpu="G", emulated=("gpu",))
DAY_MS = 86_400_000
COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]

Values = Mapping[tuple[str, str], "float | Outcome"]
"""By case id and state of quirks: a latency in ms, or what came instead."""


@dataclass
class Folder:
    """A results folder that grows by commits."""

    path: Path
    machine: str = IDENTITY.key
    commits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write("machine.json", {"machine": self.machine, "version": 1})

    def write(self, name: str, data: Any) -> Path:
        file = self.path / self.machine / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(data), encoding="utf-8")
        return file

    def commit(self, values: Values, *, tvm: str = "0.27.0", records: bool = True, artifact: str = "") -> Path:
        """Add one commit. Latencies come with a confidence interval of +-1 %."""
        number = len(self.commits)
        commit = f"{number:08x}" * 5
        self.commits.append(commit)
        cases = list(dict.fromkeys(case for case, _ in values))
        states = list(dict.fromkeys(quirks for _, quirks in values))
        flat = [values[case, quirks] for case in cases for quirks in states]
        seconds = [None if isinstance(value, Outcome) else value / 1e3 for value in flat]
        codes = [CODES[value] if isinstance(value, Outcome) else 0 for value in flat]
        params = [[repr(case) for case in cases], [repr(quirks) for quirks in states]]
        low, high = ([value and value * k for value in seconds] for k in (0.99, 1.01))
        data = {
            "commit_hash": commit,
            "env_name": "virtualenv-py3.11",
            "date": (number + 1) * DAY_MS,
            "params": {"machine": self.machine, "python": "3.11"},
            "python": "3.11",
            "requirements": {},
            "env_vars": {},
            "result_columns": COLUMNS,
            "results": {
                LATENCY: [seconds, params, "1", 1, 1.0, low, high],
                OUTCOME: [codes, params, "1", 1, 1.0],
            },
            "durations": {},
            "version": 2,
        }
        file = self.write(f"{commit[:8]}-virtualenv-py3.11.json", data)
        if records:
            lines = [a_record(*key, value, tvm, artifact).line() for key, value in values.items()]
            file.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file


def a_record(case: str, quirks: str, value: float | Outcome, tvm: str = "0.27.0", artifact: str = "") -> Record:
    model, path, precision, tuning = case.split("-")
    outcome = value if isinstance(value, Outcome) else Outcome.OK
    return Record.model_validate(
        {
            "case": case,
            "model": model,
            "path": path,
            "precision": precision,
            "tuning": tuning,
            "device": "virtual",
            "identity": IDENTITY,
            "identity_key": IDENTITY.key,
            "emulated": IDENTITY.emulated,
            "outcome": outcome,
            "message": "" if outcome is Outcome.OK else f"what went wrong with {model}",
            "as_shipped": quirks == "as-shipped",
            "wall_ms": [value] * 10 if not isinstance(value, Outcome) else [],
            "max_abs_err": 0.5 if outcome is Outcome.WRONG_RESULT else 1e-7,
            "tolerance": 1e-3,
            "quirks": ("tir-pipeline-tuple",),
            "artifact": artifact,
            "tvm": tvm,
            "ffi": "0.1.14",
            "harness": "0.1.0",
            "started_at": "2026-01-01T00:00:00+00:00",
            "run": "r",
        }
    )


def both(case: str, worked_around: float | Outcome, as_shipped: float | Outcome) -> dict[tuple[str, str], Any]:
    return {(case, "workarounds"): worked_around, (case, "as-shipped"): as_shipped}


def names(found: Sequence[Any]) -> list[str]:
    return [f"{one.verdict.value} {one.series.quirks}" for one in found]
