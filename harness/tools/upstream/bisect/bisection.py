"""A bisection over real revisions, each in its own environment.

What was asked and all that is found is kept after each step, so that a killed bisection goes on where it ended.

<cache>/bisect/<key>/state.json      the question, and every inspection
<cache>/bisect/<key>/records.jsonl   the record of every session
<cache>/bisect/<key>/kernels.diff    in the end: what the compiler made on both sides
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from msgspec import structs

from device_runner.failures import RigFailure
from device_runner.files import write_whole
from device_runner.store import Store, key_of, sha256_of
from harness.base.case import Case
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.compile.artifacts.artifact import KERNELS
from harness.compile.artifacts.planner import model_digest
from harness.judge.decisions import MeasuredBuild, PairedDecision, today
from harness.judge.stats.engine import TurnPlan
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.measure.records.record import RecordFile
from harness.tools.shared.revision_search import Pace, RevisionSearch, RevisionState
from harness.tools.shared.revisions import Revision
from harness.tools.shared.toolchain import RunOptions, Toolchain
from harness.tools.upstream.bisect.judging import (
    NOT_FITTING,
    NOT_INSTALLABLE,
    Inspection,
    Opener,
    Reason,
    RevisionJudge,
    RevisionRunner,
    reason_of,
    state_of,
)
from harness.tools.upstream.bisect.line import advice_before

STATE, RECORDS, DIFF = "state.json", "records.jsonl", "kernels.diff"
WRONG_RATE = 0.01
"""Chance that any inspection of a bisection calls a revision slower that is not; shared out among them."""
MORE_INSPECTIONS = 2
"""Further inspections that may call a revision slower by mistake: the bad end, and one for skipped revisions."""


@dataclass(frozen=True)
class Bisection:
    """What is asked: since which of these revisions, oldest first, is the case bad?"""

    case: str
    line: Sequence[Revision]
    options: RunOptions
    reason: Reason | None
    """What it is bad by; None for what the bad end turns out to be."""
    rules: Rules
    most_sessions: int
    cache: Path
    paths: Sequence[str] = ()
    """The line has only commits that touch these; all if there are none."""

    @property
    def question(self) -> dict[str, object]:
        """All that decides the answer, but for what is installed. Its words are those of bisections kept before."""
        quirks = self.options.quirks
        case, file = Case.parse(self.case), self.options.schedules_file
        model = model_digest(self.options.read_suite(), case.model, self.cache)
        schedules = {"schedules": sha256_of(file)} if file and case.tuning.scheduled else {}
        suite = sha256_of(self.options.suite) if self.options.suite.exists() else ""  # with --model there need be none
        facts = {"suite": suite, "device": self.options.device, "model": model}
        policy = {"as_shipped": quirks.as_shipped, "but_for": quirks.with_quirks}
        rules = {"relevant": self.rules.relevant, "floor_ms": self.rules.floor_ms, "most_sessions": self.most_sessions}
        ends = {"good": self.line[0].commit, "bad": self.line[-1].commit, "case": self.case}
        paths = {"paths": sorted(self.paths)} if self.paths else {}
        return {**facts, **policy, **rules, **ends, "reason": self.reason or "", **schedules, **paths}

    def run(self, say: Callable[[str], None], *, fresh: bool = False) -> BisectionResult:
        """Find it, going on from what an ended run of the same question found. Raises UsageError, RigFailure."""
        names = [revision.name for revision in self.line]
        with bisection_store(self.cache, self.question, fresh=fresh) as store:
            if store.inspections:
                say(f"going on with {len(store.inspections)} revisions looked at before (--fresh forgets them)")
            judge = self._judge(store, self._open(say), RevisionSearch(names).inspections_left + MORE_INSPECTIONS)
            result = find_first_bad(names, judge, store, say)
            return BisectionResult(result, store.folder, self._diff(result, store.folder))

    def _open(self, say: Callable[[str], None]) -> Opener:
        revisions = {revision.name: revision for revision in self.line}

        @functools.cache
        def opened(name: str) -> RevisionRunner:
            return Toolchain.of(revisions[name], self.cache, self.options, say)

        return opened

    def _judge(self, store: BisectionStore, open_: Opener, inspections: int) -> RevisionJudge:
        records = RecordFile(store.folder / RECORDS)
        alpha = min(self.rules.alpha, WRONG_RATE / inspections)
        plan = TurnPlan(dataclasses.replace(self.rules, alpha=alpha), self.most_sessions)
        reason = self.reason or Reason.WRONG
        loaded, source = (lambda: records.load().records), functools.partial(kernels, self.cache)
        judge = RevisionJudge(self.case, reason, self.line[0].name, open_, plan, records.append, loaded, source)
        return (
            judge if self.reason else dataclasses.replace(judge, reason=_infer_reason(judge, self.line[-1].name, store))
        )

    def _diff(self, result: SearchResult, folder: Path) -> list[str]:
        """Return what changed in the kernels, also written into the folder."""
        artifacts = {inspection.name: inspection.artifact for inspection in result.inspections}
        old, new = (kernels(self.cache, artifacts.get(name, "")) for name in (result.good, result.bad))
        lines = kernels_diff(old, new, (result.good, result.bad))
        (folder / DIFF).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return lines


@dataclass(frozen=True)
class BisectionResult:
    """What was found, where its evidence is, and the difference of the kernels on both sides."""

    search: SearchResult
    folder: Path
    diff: list[str]


def _infer_reason(judge: RevisionJudge, bad: str, store: BisectionStore) -> Reason:
    """Return what the bad end is bad by. What was looked at for it is not looked at again, if one session decides."""
    inspection = store.inspections.get(bad) or judge.inspect(bad, [])
    if inspection.outcome in (NOT_INSTALLABLE, NOT_FITTING):
        raise UsageError(f"--bad {bad} {inspection.outcome}: {inspection.why}", hint="name another revision")
    outcome = Outcome(inspection.outcome)
    reason = reason_of(outcome)
    if reason is not Reason.SLOWER:
        store.add(dataclasses.replace(inspection, state=state_of(reason, outcome)))
    return reason


@dataclass(frozen=True)
class SearchResult:
    """Result of a bisection."""

    reason: Reason
    good: str
    """The last revision that is known to be good."""
    candidates: list[str]
    """The first bad revision; or those that it may be, because some could not be judged. The last one is bad."""
    inspections: list[Inspection]
    """Inspections in the order of the line."""

    @property
    def bad(self) -> str:
        """The first revision that is known to be bad."""
        return self.candidates[-1]

    def confirmed(self, case: str, *, as_shipped: bool) -> list[PairedDecision]:
        """Return the step for the history; nothing if it is one of several, or no matter of latency."""
        looked = {inspection.name: inspection for inspection in self.inspections}
        bad = looked.get(self.bad)
        if self.reason is not Reason.SLOWER or len(self.candidates) > 1 or not bad:
            return []
        base, head = (
            MeasuredBuild(looked[name].artifact if name in looked else "", name) for name in (self.good, self.bad)
        )
        decision = PairedDecision(bad.identity, case, as_shipped, Verdict.SLOWER, base, head, bad.relative)
        return [structs.replace(decision, sessions=bad.sessions, by="bisect", day=today())]


def find_first_bad(
    line: Sequence[str], judge: RevisionJudge, store: BisectionStore, say: Callable[[str], None]
) -> SearchResult:
    """Verify both ends, then inspect revisions in between. Raises UsageError if an end is not what it should be."""
    pace = Pace()

    def inspect(name: str, progress: str, left: int) -> Inspection:
        if name not in store.inspections:
            say(f"looking at {name} ({progress}, about {left} to go{pace.left(left)})")
            with pace.step():
                inspection = judge.inspect(name, list(store.inspections.values()))
            say(f"{name} is {_format_inspection(inspection)}")
            if name in (line[0], line[-1]) and inspection.state is RevisionState.SKIP:
                return inspection  # it ends the search; what was in the way may be gone when the same is asked again
            store.add(inspection)
        return store.inspections[name]

    search = RevisionSearch(line)
    between = search.inspections_left
    _require(inspect(line[0], "it should be good", between + 2), RevisionState.GOOD, judge.reason)
    _require(inspect(line[-1], "it should be bad", between + 1), RevisionState.BAD, judge.reason)
    while name := search.next:
        inspection = inspect(name, f"{len(search.candidates)} candidates", search.inspections_left)
        search = RevisionSearch(line, {**search.states, name: inspection.state})
    inspections = [store.inspections[name] for name in line if name in store.inspections]
    return SearchResult(judge.reason, search.good, search.candidates, inspections)


def _require(inspection: Inspection, state: RevisionState, reason: Reason) -> None:
    if inspection.state is not state:
        other = "an earlier" if state is RevisionState.GOOD else "a later"
        expected = f"{state.value} (the reason is {reason.value})"
        hint = f"name {other} revision, or another --reason"
        if state is RevisionState.GOOD:
            hint = advice_before(inspection.name, hint)
        raise UsageError(
            f"--{state.value} {inspection.name} is not {expected}: {_format_inspection(inspection)}", hint=hint
        )


def _format_inspection(inspection: Inspection) -> str:
    if inspection.state is RevisionState.SKIP:
        return f"not judged: {inspection.outcome}: {inspection.why}"
    return ": ".join(part for part in (inspection.state.value, inspection.outcome, inspection.why) if part)


def kernels_diff(old: str, new: str, names: tuple[str, str]) -> list[str]:
    """Return the unified difference of two OpenCL sources, without line ends; empty if they are the same.

    Declarations are left out: each stands again where the kernel begins.
    """
    was, now = (f"{name}.cl" for name in names)
    return list(difflib.unified_diff(_kernels(old), _kernels(new), was, now, lineterm=""))


def _kernels(source: str) -> list[str]:
    return [line for line in source.splitlines() if not (line.startswith("__kernel") and line.endswith(";"))]


def shorten(lines: list[str], most: int, width: int) -> list[str]:
    """Shorten text to a screen; the last line says how much was left out."""
    short = [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines[:most]]
    return [*short, f"... and {len(lines) - most} more lines"] if len(lines) > most else short


def kernels(cache: Path, artifact: str) -> str:
    """OpenCL source of an artifact in the store; empty if the compiler made none, or if the artifact was pruned."""
    folder = Store(cache, "artifacts").find(artifact) if artifact else None
    file = folder / KERNELS if folder else None
    return file.read_text(encoding="utf-8") if file and file.exists() else ""


@dataclass
class BisectionStore:
    """The inspections of one question, on disk after each."""

    folder: Path
    question: dict[str, Any]
    inspections: dict[str, Inspection]

    def add(self, inspection: Inspection) -> None:
        """Keep one more inspection."""
        self.inspections[inspection.name] = inspection
        facts = {"question": self.question, "looks": list(map(dataclasses.asdict, self.inspections.values()))}
        write_whole(self.folder / STATE, json.dumps(facts, indent=1))


@contextlib.contextmanager
def bisection_store(cache: Path, question: dict[str, Any], *, fresh: bool) -> Iterator[BisectionStore]:
    """Yield what is known of a question, nothing if `fresh`. Raises RigFailure while somebody else works on it."""
    folder = cache / "bisect" / key_of(question)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_suffix(".lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RigFailure("the same bisection is running already", hint="wait for it, or end it") from None
    try:
        if fresh:
            shutil.rmtree(folder)
            folder.mkdir()
        (folder / "title").write_text(f"bisection of {question.get('case')}\n", encoding="utf-8")
        yield BisectionStore(folder, question, _load(folder / STATE))
    finally:
        lock.release()


def _load(file: Path) -> dict[str, Inspection]:
    if not file.exists():
        return {}
    try:
        looks = json.loads(file.read_text(encoding="utf-8"))["looks"]
        return {look["name"]: Inspection(**{**look, "state": RevisionState(look["state"])}) for look in looks}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RigFailure(
            f"{file} is damaged ({type(error).__name__}: {error})", hint="--fresh starts the bisection anew"
        ) from error
