"""How long `adreno-bench history publish` takes for 200 commits of 100 series. Run: python -m benchmarks.publish_speed

Prints the seconds of asv's own publishing and of our pages, each of its own run on the same folder.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from device_runner.device import Identity
from harness.cases.case import Case
from harness.history.measured import AS_SHIPPED, QUIRKS
from harness.history.results import LATENCY, OUTCOME
from harness.history.runs import asv, load_project
from harness.report.publish import publish
from harness.run.outcome import Outcome
from harness.run.record import Record

COMMITS, CASES, DAY_S = 200, 50, 86_400
MACHINE = "virtual-example-00000000"
PARAMS = [[repr(Case(f"model{index}", "opencl").id) for index in range(CASES)], [repr(state) for state in QUIRKS]]
COLUMNS = ["result", "params", "version", "started_at", "duration"]
COLUMNS += [f"stats_{name}" for name in ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")] + ["samples"]


def main() -> None:
    """Make a results folder, publish it twice, print both times."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        commits = _repository(root / "repo")
        _results(root / "results", commits)
        config = {"version": 1, "project": "p", "repo": str(root / "repo"), "dvcs": "git", "branches": ["main"]}
        (root / "asv.conf.json").write_text(json.dumps({**config, "environment_type": "virtualenv"}), encoding="utf-8")
        project = load_project(root / "asv.conf.json")
        began = time.perf_counter()
        published = publish(project)
        whole_s = time.perf_counter() - began
        began = time.perf_counter()
        asv(project, ["publish", "--no-pull"], output=lambda _: None)
        asv_s = time.perf_counter() - began
        series = CASES * len(QUIRKS)
        print(f"{COMMITS} commits x {series} series: {whole_s:.1f} s, of which asv {asv_s:.1f} s")
        assert not published.skipped, published.skipped


def _repository(repo: Path) -> list[str]:
    """Empty commits, one a day."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repo], check=True)
    lines = []
    for index in range(COMMITS):
        who = f"n <n@localhost> {1_700_000_000 + index * DAY_S} +0000"
        lines.append(f"commit refs/heads/main\ncommitter {who}\ndata 1\nx\n")
    subprocess.run(["git", "-C", repo, "fast-import", "--quiet"], input="".join(lines).encode(), check=True)
    listed = subprocess.run(["git", "-C", repo, "rev-list", "--reverse", "main"], capture_output=True, check=True)
    return listed.stdout.decode().split()


def _results(results: Path, commits: list[str]) -> None:
    """Latencies that wander, with ten samples each, and a step somewhere in every tenth series."""
    rng = random.Random(1)
    (results / MACHINE).mkdir(parents=True)
    (results / MACHINE / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}), encoding="utf-8")
    meta = {
        name: {
            "name": name,
            "type": kind,
            "unit": unit,
            "param_names": ["case", "quirks"],
            "params": PARAMS,
            "version": "1",
            "code": "",
        }
        for name, kind, unit in ((LATENCY, "time", "seconds"), (OUTCOME, "track", "outcome"))
    }
    (results / "benchmarks.json").write_text(json.dumps({**meta, "version": 2}), encoding="utf-8")
    count = CASES * len(QUIRKS)
    for index, commit in enumerate(commits):
        centre = [0.01 * (1.3 if k % 10 == 0 and index > k else 1.0) for k in range(count)]
        samples = [[c * rng.gauss(1, 0.01) for _ in range(10)] for c in centre]
        middle = [sorted(each)[5] for each in samples]
        low, high = ([m * factor for m in middle] for factor in (0.99, 1.01))
        ones, tens = [1] * count, [10] * count
        data = {
            "commit_hash": commit,
            "env_name": "env",
            "date": (1_700_000_000 + index * DAY_S) * 1000,
            "params": {"machine": MACHINE},
            "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
            "requirements": {},
            "env_vars": {},
            "result_columns": COLUMNS,
            "results": {
                LATENCY: [middle, PARAMS, "1", 1, 1.0, low, high, low, high, ones, tens, samples],
                OUTCOME: [[0] * count, PARAMS, "1", 1, 1.0],
            },
            "durations": {},
            "version": 2,
        }
        file = results / MACHINE / f"{commit[:8]}-env.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        keys = itertools.product((text.strip("'") for text in PARAMS[0]), QUIRKS)
        lines = [_record(*key, wall).line() for key, wall in zip(keys, samples, strict=True)]
        file.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _record(case: str, quirks: str, samples_s: list[float]) -> Record:
    parts = Case.parse(case)
    return Record(
        case=case,
        model=parts.model,
        path=parts.path,
        precision=parts.precision.value,
        tuning=parts.tuning.value,
        device="virtual",
        identity=Identity("virtual", "example"),
        identity_key=MACHINE,
        emulated=(),
        outcome=Outcome.OK,
        as_shipped=quirks == AS_SHIPPED,
        wall_ms=[sample * 1e3 for sample in samples_s],
        tvm="0.27.0",
        ffi="0.1.14",
        harness="0.1.0",
        started_at="2026-01-01T00:00:00+00:00",
        run="example",
    )


if __name__ == "__main__":
    main()
