"""Which artifacts `adreno-bench isa` looks at, and which it compares them with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.failures import UsageError

if TYPE_CHECKING:
    from harness.cli.options import CaseOptions
    from harness.cli.screen import Screen
    from harness.workbench import Request


@dataclass(frozen=True)
class Opposite:
    """What a case is compared with."""

    title: str
    artifact: str


def artifacts(what: CaseOptions, device: str, screen: Screen) -> tuple[dict[str, str], list[str]]:
    """Keys of the artifacts of the chosen cases, built if they are not there; and what is to be said of the others."""
    return _built(what.request(), device, screen)


def check(against: str) -> None:
    """Raise UsageError for what cannot be compared with, before anything is built."""
    from harness.compiler.releases import RELEASES

    if not (Path(against).is_file() or "-" in against or against[:1].isdigit()):
        what = "no file of records, no case and no release of TVM"
        raise UsageError(f"{against} is {what}", hint=f"known releases are {', '.join(RELEASES)}")


def opposite(
    against: str, built: Mapping[str, str], what: CaseOptions, device: str, config: Path, screen: Screen
) -> dict[str, Opposite]:
    """What each case is compared with, by case. Raises UsageError if there is nothing."""
    if Path(against).is_file():
        found = _of_records(Path(against), built)
    elif "-" in against:
        found = _of_cases(against, built, what, device, screen)
    else:
        found = _of_release(against, built, what, device, config, screen)
    if not found:
        raise UsageError(f"{against} has nothing to compare {', '.join(built)} with", hint="choose other cases")
    return found


def _built(request: Request, device: str, screen: Screen) -> tuple[dict[str, str], list[str]]:
    from harness.build.artifact import Artifact
    from harness.workbench import open_workbench

    with open_workbench(request, request.one_device(device, screen), screen, timed=False) as bench:
        results = bench.builder.build(plan.compile for plan in bench.plans)
    keys, remarks = {}, []
    for plan in bench.plans:
        result = results[plan.compile.key]
        if isinstance(result, Artifact):
            keys[plan.case.id] = result.key
        else:
            remarks.append(f"{plan.case.id}: {result}")
    return keys, remarks


def _of_records(file: Path, built: Mapping[str, str]) -> dict[str, Opposite]:
    from harness.cli.record_filter import open_index

    with open_index(file) as index:
        newest = [record for record in index.newest(lambda case: case in built) if record.artifact]
    return {record.case: Opposite(f"{record.case} of {file}", record.artifact) for record in newest}


def _of_cases(
    glob: str, built: Mapping[str, str], what: CaseOptions, device: str, screen: Screen
) -> dict[str, Opposite]:
    """For each case the one of those that match which has the same model, and as much else of it as possible."""
    from harness.cases.case import Case
    from harness.workbench import Request

    request = Request.read(what.suite, [glob], what.quirks)
    keys, _ = _built(request, device, screen)

    def shared(one: Case, other: Case) -> int:
        return (one.precision == other.precision) + (one.tuning == other.tuning)

    found = {}
    for name in built:
        case = Case.parse(name)
        others = [other for other in map(Case.parse, keys) if other.model == case.model and other != case]
        if others:
            chosen = max(others, key=lambda other: shared(case, other)).id
            found[name] = Opposite(chosen, keys[chosen])
    return found


def _of_release(
    word: str, built: Mapping[str, str], what: CaseOptions, device: str, config: Path, screen: Screen
) -> dict[str, Opposite]:
    from harness.revisions.sources import revision
    from harness.revisions.toolchain import RunOptions, Toolchain
    from harness.store import cache_root

    cache = cache_root()
    toolchain = Toolchain.of(
        revision(word, config, cache), cache, RunOptions(what.suite, device, what.quirks), screen.say
    )
    made = toolchain.build(list(built))
    return {case: Opposite(f"{case} of {word}", build.artifact) for case, build in made.items() if build.library}
