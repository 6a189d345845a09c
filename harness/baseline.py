"""Baselines: what a case was when somebody called it good, one reviewable file for each case and identity.

    baselines/<identity>/<case>.json

Only right answers are blessed, and only latencies that a phone or this host really had: of an emulated device the
correctness alone is kept. A checksum tells a file that was edited by hand from one that was blessed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as field

from device_runner.failures import RigFailure
from harness.compare import Key, Side, latest_build, require_case_id, sides_of
from harness.failures import UsageError
from harness.outcome import Outcome
from harness.record import Record
from harness.stats.session import summarise

SCHEMA = 1
DEFAULT_FOLDER = Path("baselines")
LARGEST_BYTES = 1 << 20
DIGITS = 6
"""Significant digits of a sample: enough for any verdict, and a diff that can be read."""


class Session(BaseModel):
    """The samples of one session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    started_at: str
    wall_ms: list[float] = field(min_length=1)


class Baseline(BaseModel):
    """A case that was right, and how fast it was in each session. Times in ms."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = field(1, alias="schema")
    case: str
    identity_key: str
    kind: Literal["latency", "correctness"]
    """`correctness` if there is no latency to keep, because the device was emulated."""
    emulated: tuple[str, ...]
    artifact: str
    tvm: str
    ffi: str
    quirks: tuple[str, ...]
    max_abs_err: float | None
    tolerance: float | None
    facts: dict[str, int]
    sessions: list[Session]

    @property
    def side(self) -> Side:
        """As one side of a comparison."""
        return Side(
            key=Key(self.identity_key, self.case),
            outcome=Outcome.OK,
            sessions=tuple(tuple(session.wall_ms) for session in self.sessions),
            artifact=self.artifact,
            quirks=self.quirks,
            tvm=self.tvm,
            emulated=self.emulated,
        )

    def text(self) -> str:
        """The content of its file: one key to a line, one session to a line, the same for the same facts."""
        facts = self.model_dump(mode="json", by_alias=True)
        return _lines({**facts, "sha256": _checksum(facts)})


@dataclass(frozen=True)
class Blessing:
    """What came of one case: a baseline, or why there is none."""

    key: Key
    baseline: Baseline | None
    notes: tuple[str, ...]
    """Why it is refused, or what is left out."""
    outcome: Outcome
    """`ok` if it was blessed, else what stood against it."""


def bless(records: Iterable[Record]) -> list[Blessing]:
    """Judge whether the latest build of each case is fit to be a baseline. What was run as shipped is left alone."""
    groups: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        if not record.as_shipped:
            groups[Key(record.identity_key, record.case)].append(record)
    return [_bless(key, latest_build(group)) for key, group in groups.items()]


def _bless(key: Key, group: Sequence[Record]) -> Blessing:
    side = sides_of(group)[key]
    if side.outcome is not Outcome.OK:
        return Blessing(key, None, (f"{side.outcome.value}: {side.message}",), side.outcome)
    right = [record for record in group if record.outcome is Outcome.OK]
    if side.emulated:
        baseline, note = _baseline(right, []), f"emulated ({', '.join(side.emulated)}): no latency is kept"
        return Blessing(key, baseline, (note,), Outcome.OK)
    if not side.sessions:
        return Blessing(key, _baseline(right, []), ("it was not timed: no latency is kept",), Outcome.OK)
    fit = [record for record in right if summarise([record.wall_ms])[0]]
    _, unfit = summarise(side.sessions)
    if not fit:
        return Blessing(key, None, unfit, Outcome.THROTTLED)
    return Blessing(key, _baseline(right, fit), tuple(f"left out {reason}" for reason in unfit), Outcome.OK)


def _baseline(right: Sequence[Record], timed: Sequence[Record]) -> Baseline:
    last = right[-1]
    return Baseline(
        case=last.case,
        identity_key=last.identity_key,
        kind="latency" if timed else "correctness",
        emulated=last.emulated,
        artifact=last.artifact,
        tvm=last.tvm,
        ffi=last.ffi,
        quirks=last.quirks,
        max_abs_err=last.max_abs_err,
        tolerance=last.tolerance,
        facts=last.facts,
        sessions=[Session(started_at=r.started_at, wall_ms=[_rounded(ms) for ms in r.wall_ms]) for r in timed],
    )


def save(baseline: Baseline, folder: Path) -> bool:
    """Write a baseline below `folder`; whether its file changed. Raises RigFailure."""
    file, text = _file(folder, baseline.identity_key, baseline.case), baseline.text()
    try:
        if file.exists() and file.read_text(encoding="utf-8") == text:
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(".new")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(file)
    except OSError as error:
        raise RigFailure(f"cannot write {file}: {error.strerror}", hint="pass --baselines DIR") from error
    return True


def find(folder: Path, identity_key: str, case: str) -> Baseline | None:
    """The baseline of a case on an identity; None if there is none. Raises UsageError for a file that is not good."""
    file = _file(folder, identity_key, case)
    return _read(file) if file.exists() else None


def load(folder: Path) -> list[Baseline]:
    """All baselines below a folder: of every identity, or of one. Raises UsageError for a file that is not good."""
    return [_read(file) for file in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")])]


def sides(baselines: Iterable[Baseline]) -> dict[Key, Side]:
    """Baselines as a side to compare with."""
    return {baseline.side.key: baseline.side for baseline in baselines}


def _read(file: Path) -> Baseline:
    hint = "take it from version control again, or bless anew"
    try:
        with file.open("rb") as stream:
            text = stream.read(LARGEST_BYTES + 1)
        if len(text) > LARGEST_BYTES:
            raise UsageError(f"{file} is larger than any baseline", hint=hint)
        facts = json.loads(text)
        checksum = facts.pop("sha256", None) if isinstance(facts, dict) else None
        baseline = Baseline.model_validate(facts)
    except OSError as error:
        raise RigFailure(f"cannot read {file}: {error.strerror}") from error
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "content"
        raise UsageError(f"{file} is no baseline of schema {SCHEMA} ({where}: {problem['msg']})", hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no baseline ({error})", hint=hint) from None
    if checksum != _checksum(baseline.model_dump(mode="json", by_alias=True)):
        raise UsageError(f"{file} was edited by hand since it was blessed", hint=hint)
    if (baseline.identity_key, f"{baseline.case}.json") != (file.parent.name, file.name):
        raise UsageError(f"{file} is the baseline of {baseline.case} on {baseline.identity_key}", hint="move it back")
    require_case_id(baseline.case)
    return baseline


def _file(folder: Path, identity_key: str, case: str) -> Path:
    """Raises UsageError if a name, which may come from a file of others, would lead out of the folder."""
    for name in (identity_key, case):
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise UsageError(
                f"{name!r} cannot be part of a file name", hint="this record was not written by adreno-bench"
            )
    return folder / identity_key / f"{case}.json"


def _rounded(ms: float) -> float:
    return float(f"{ms:.{DIGITS}g}")


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _lines(facts: dict[str, Any]) -> str:
    parts = [f" {json.dumps(name)}: {_value(value)}" for name, value in facts.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n ]"
    return json.dumps(value, sort_keys=isinstance(value, dict))
