"""Records without a device: sessions of a case whose noise is known."""

import random
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from device_runner.device import Identity
from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.judge.baseline import Blessing, bless_builds
from harness.measure.records.index import RecordIndex
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record

IDENTITY = Identity("phone", "serial", gpu="Adreno740", driver="1")


def a_record(case: str = "tiny-opencl-float32-untuned", **facts: Any) -> Record:
    parsed = Case.parse(case)
    identity = facts.setdefault("identity", IDENTITY)
    known = {
        "case": case,
        **{name: getattr(parsed, name) for name in ("model", "path")},
        "precision": parsed.precision.value,
        "tuning": parsed.tuning.value,
        "device": "phone",
        "identity_key": identity.key,
        "emulated": identity.emulated,
        "outcome": Outcome.OK,
        "artifact": "a" * 24,
        "max_abs_err": 1e-5,
        "tolerance": 1e-3,
        "tvm": "0.27.0.post1",
        "ffi": "0.1.14.post1",
        "harness": "0.1.0",
        "started_at": "2026-01-01T00:00:00.000+00:00",
        "run": "abc",
    }
    return _record({**known, **facts})


def _record(facts: dict[str, Any]) -> Record:
    """Return the record of these facts; `parts` may be a list of the parts themselves."""
    parts = facts.get("parts", {})
    return Record.model_validate({**facts, "parts": parts if isinstance(parts, dict) else parts_of(*parts)})


def sessions(ms: float, count: int = 4, seed: int = 0, **facts: Any) -> list[Record]:
    """`count` records of the case about `ms`: sessions 1 % apart, samples 2 %."""
    chance = random.Random(seed)
    return [a_record(wall_ms=_samples(ms * chance.gauss(1, 0.01), chance), **facts) for _ in range(count)]


def index_of(folder: Path, records: Sequence[Record]) -> RecordIndex:
    """What a file of these records can be asked."""
    file = folder / f"{uuid.uuid4().hex}.jsonl"
    file.write_text("".join(record.line() + "\n" for record in records))
    return RecordIndex(file)


def blessing_of(series: Sequence[Record], *, emulated: bool = False) -> Blessing:
    """What becomes of one series that is blessed."""
    (blessing,) = bless_builds([series], emulated=emulated)
    return blessing


def _samples(ms: float, chance: random.Random) -> list[float]:
    return [ms * chance.gauss(1, 0.02) for _ in range(10)]


def virtual_record(**facts: Any) -> Record:
    """A record of the virtual device, with these facts in place of the usual ones."""
    known = {
        "case": "tiny-opencl-float32-untuned",
        "model": "tiny",
        "path": "opencl",
        "precision": "float32",
        "tuning": "untuned",
        "device": "virtual",
        "identity": Identity("virtual", "127.0.0.1:6000", gpu="PoCL", extensions=("cl_khr_fp64",)),
        "identity_key": "virtual-PoCL-12345678",
        "emulated": ("soc",),
        "outcome": Outcome.OK,
        "tvm": "0.27.0.post1",
        "ffi": "0.1.14.post1",
        "harness": "0.1.0",
        "started_at": "2026-01-01T00:00:00.000+00:00",
        "run": "abc",
    }
    return _record({**known, **facts})
