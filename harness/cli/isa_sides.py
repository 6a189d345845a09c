"""Which artifacts `adreno-bench isa` looks at, and what it compares them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.failures import UsageError

if TYPE_CHECKING:
    from harness.cli.options import CaseOptions
    from harness.cli.screen import Screen
    from harness.isa.code import MachineCode
    from harness.run.compiled_record import CompiledCase
    from harness.run.record import Record


@dataclass(frozen=True)
class Opposite:
    """What a case is compared with."""

    title: str
    artifact: str = ""
    """Key of what was built; empty if only its numbers are known."""
    codes: tuple[MachineCode, ...] = ()
    """Numbers that were kept of it."""
    case: str = ""
    """Its id, if it is another case."""
    said: str = ""
    """What the device of a record came to with it."""


@dataclass(frozen=True)
class Source:
    """Where what is compared comes from."""

    what: CaseOptions
    device: str
    config: Path
    """asv's configuration of a compiler's repository."""
    screen: Screen

    def made(self, release: str | None = None) -> list[CompiledCase]:
        """What TVM makes of the chosen cases, of another release if one is named; built if it is not there."""
        if release:
            return _of_revision(release, self.what.ids, self)
        from harness.workbench import build_only

        return build_only(self.what.request(), self.device, self.screen)


def check(against: str) -> None:
    """Raise UsageError for what cannot be compared with, before anything is built."""
    from harness.compiler.installed import RELEASES

    if Path(against).suffix == ".jsonl" and not Path(against).is_file():
        raise UsageError(f"there is no {against}", hint=f"`adreno-bench isa --records {against}` makes it")
    if not (Path(against).is_file() or "-" in against or against[:1].isdigit()):
        what = "no file of records, no case and no release of TVM"
        raise UsageError(f"{against} is {what}", hint=f"known releases are {', '.join(RELEASES)}")


def opposite(against: str, cases: Sequence[str], source: Source) -> dict[str, Opposite]:
    """What each case is compared with, by case. Raises UsageError if there is nothing."""
    if Path(against).is_file():
        found = _of_records(Path(against), cases)
    elif "-" in against:
        found = _of_cases(against, cases, source)
    else:
        made = _of_revision(against, cases, source)
        found = {one.case.id: Opposite(f"{one.case.id} of {against}", one.artifact) for one in made if one.artifact}
    if not found:
        raise UsageError(f"{against} has nothing to compare {', '.join(cases)} with", hint="choose other cases")
    return found


def _of_records(file: Path, cases: Sequence[str]) -> dict[str, Opposite]:
    """What the newest records say: their numbers, and the artifact for what has none."""
    from harness.cli.record_filter import open_index

    with open_index(file) as index:
        records = index.every(lambda case: case in cases)
    codes: dict[str, dict[tuple[str, str], MachineCode]] = {}
    for record in records:
        codes.setdefault(record.case, {}).update((code.series, code) for code in record.isa)
    newest = {record.case: record.artifact for record in records}
    said = {record.case: _said(record) for record in records if not record.standalone}
    return {
        case: Opposite(f"{case} of {file}", key, tuple(codes[case].values()), said=said.get(case, ""))
        for case, key in newest.items()
    }


def _said(record: Record) -> str:
    """What a device came to with a case: PoCL, say, on a host without a GPU."""
    by = record.identity.driver or record.identity.gpu
    return f"{record.device} ({by}): {record.outcome.value}" + (f": {record.message}" if record.message else "")


def _of_cases(glob: str, cases: Sequence[str], source: Source) -> dict[str, Opposite]:
    """For each case the one of those that match which has the same model, and as much else of it as possible."""
    from harness.cases.case import Case
    from harness.workbench import Request, build_only

    request = Request.read(source.what.suite, [glob], source.what.quirks, schedules=source.what.schedules)
    keys = {one.case: one.artifact for one in build_only(request, source.device, source.screen) if one.artifact}

    def shared(one: Case, other: Case) -> int:
        return (one.precision == other.precision) + (one.tuning == other.tuning)

    found = {}
    for case in map(Case.parse, cases):
        others = [other for other in keys if other.model == case.model and other != case]
        if others:
            chosen = max(others, key=lambda other: shared(case, other))
            found[case.id] = Opposite(chosen.id, keys[chosen], case=chosen.id)
    return found


def _of_revision(word: str, cases: Sequence[str], source: Source) -> list[CompiledCase]:
    """What another release, or a commit, makes of the cases, in an environment of its own."""
    from device_runner.store import cache_root
    from harness.build.pool import load_artifact
    from harness.cases.case import Case
    from harness.compiler.installed import RELEASES
    from harness.failures import CompileFailure, CompilerCrash, CompileTimeout
    from harness.revisions.sources import revision
    from harness.revisions.toolchain import Toolchain
    from harness.run.compiled_record import CompiledCase
    from harness.run.record import Releases

    cache, options = cache_root(), source.what.on_each_revision(source.device)
    toolchain = Toolchain.of(revision(word, source.config, cache), cache, options, source.screen.say)
    kinds = {kind.outcome: kind for kind in (CompilerCrash, CompileTimeout)}
    known = RELEASES.get(word)
    by = Releases(tvm=known.tvm, ffi=known.ffi[0]) if known else None
    found = []
    for case, made in toolchain.build(cases).items():
        failure = kinds.get(made.outcome.value, CompileFailure)(made.message or f"{word} made no library of it")
        result = load_artifact(cache, made.artifact) if made.library else None
        found.append(CompiledCase(Case.parse(case), result or failure, made.quirks, by))
    return found
