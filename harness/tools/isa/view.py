"""Which artifacts `adreno-bench isa` looks at, what it compares them with, and what it prints."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.names import suggestion
from device_runner.store import Store, cache_root
from harness.base.case import Case
from harness.base.failures import CompileFailure, CompilerCrash, CompileTimeout, UsageError
from harness.base.tables import counted, table
from harness.cli.options import CaseOptions
from harness.cli.record_filter import open_index
from harness.compile.artifacts.pool import load_artifact
from harness.compile.compiler.releases import RELEASES, find_release
from harness.judge.report.screen import Screen, out
from harness.measure.context import new_id
from harness.measure.records.record import Record, RecordFile, Releases
from harness.measure.workbench import Request
from harness.tools.isa.code import CodeChange, KernelDiff, MachineCode, codes_in, compare, find_matching
from harness.tools.isa.gate import CodeVerdict, judge_code, percent
from harness.tools.isa.instructions import GpuBuild, in_words
from harness.tools.isa.network import GpuNetwork, codes_of, networks, work_of
from harness.tools.isa.record import CompiledCase, build_only, code_record
from harness.tools.isa.toolchain import MesaToolchain
from harness.tools.shared.kernels.profile import Profile
from harness.tools.shared.revision_options import case_ids, on_each_revision
from harness.tools.shared.revisions import revision

_NETWORKS = ("case", "GPU", "kernels", "raw M", "weighted M", "flops/byte", "fewest waves", "spilling", "refused")
_KERNELS = ("kernel", "threads", "raw", "weighted", "M per inference", "waves", "registers", "spills", "textures")
_VERDICTS = ("case", "GPU", "verdict", "instructions", "why")
_DIFFS = ("kernel", "change", "M before", "M now", "waves", "spills")


@dataclass(frozen=True)
class CodeSide:
    """One case on one GPU, and what it is compared with."""

    head: GpuNetwork
    against: ComparisonBase
    """The base; without a title if there is none."""
    base: GpuNetwork | None = None
    """Network of the base; None if there is no base, or only its numbers are known."""
    bases: tuple[MachineCode, ...] = ()
    """What is known of the base; only what shares GPU and compiler with the head is compared."""

    @property
    def before(self) -> MachineCode | None:
        """The base's numbers, if they may be compared."""
        return find_matching(self.bases, self.head.code)


def plain(
    toolchain: MesaToolchain, sides: Sequence[CodeSide], not_built: Sequence[str], profiles: Sequence[Profile] = ()
) -> dict[str, Any]:
    """Return the view for programs."""
    view: dict[str, Any] = {"mesa": toolchain.mesa, "llvm": toolchain.llvm}
    view["cases"] = [side.head.to_json() for side in sides]
    view["not_built"] = list(not_built)
    view["differences"] = [
        {
            "case": side.head.case,
            "gpu": side.head.gpu,
            "against": side.against.title,
            "words": _words(side, profiles),
            "device_said": side.against.outcome,
            "kernels": [diff.to_json() for diff in compare(side.before, side.head.code)],
        }
        for side in sides
        if side.before
    ]
    return view


def show(
    toolchain: MesaToolchain, sides: Sequence[CodeSide], remarks: Sequence[str], profiles: Sequence[Profile] = ()
) -> None:
    """Print what a person wants to see: the networks, and the kernels of one, or what differs."""
    heads = [side.head for side in sides]
    parts = [_networks(sides)] if sides else []
    for side in sides:
        if side.before:
            parts += filter(None, ["\n".join(_words(side, profiles)), _differences(side, side.before)])
    parts += [f"{side.head.case} on {side.head.gpu}: {why}" for side in sides if (why := _not_compared(side))]
    if not any(side.against.title for side in sides) and len({network.case for network in heads}) == 1:
        parts += [f"{network.gpu}\n\n{_kernels(network)}" for network in heads]
    parts += [_refusals(network) for network in heads if network.code.refused]
    parts += list(
        dict.fromkeys(f"{side.head.case} on {side.against.outcome}" for side in sides if side.against.outcome)
    )
    parts += remarks
    parts.append(_closing(toolchain))
    out("\n\n".join(parts))


def show_verdicts(toolchain: MesaToolchain, verdicts: Sequence[CodeVerdict], remarks: Sequence[str]) -> None:
    """Print what a gate found."""
    rows = [
        (
            verdict.case,
            verdict.gpu,
            verdict.verdict.value,
            "-" if verdict.change is None else percent(verdict.change),
            verdict.why,
        )
        for verdict in verdicts
    ]
    drawn = [table(rows, _VERDICTS, right=("instructions",), prose=("why",))] if rows else []
    out("\n\n".join([*drawn, *remarks, _closing(toolchain)]))


def plain_verdicts(
    toolchain: MesaToolchain, judgements: Sequence[CodeVerdict], not_built: Sequence[str]
) -> dict[str, Any]:
    """Return the verdicts for programs."""
    verdicts = [
        {
            "case": verdict.case,
            "gpu": verdict.gpu,
            "verdict": verdict.verdict.value,
            "why": verdict.why,
            "instructions_run_per_inference": {"base": verdict.base, "head": verdict.head},
            "kernels": [kernel.to_json() for kernel in verdict.kernels],
        }
        for verdict in judgements
    ]
    return {"mesa": toolchain.mesa, "llvm": toolchain.llvm, "verdicts": verdicts, "not_built": list(not_built)}


def _closing(toolchain: MesaToolchain) -> str:
    return f"{toolchain.identity}: an open compiler, not Qualcomm's; counts, no times (docs/explanation/isa.md)"


def assembly(sides: Sequence[CodeSide], name: str) -> str:
    """Return the machine code of one kernel on every GPU; as a difference if there are two sides. Raises UsageError."""
    parts = []
    for side in sides:
        now = _code(side.head, name)
        if now is None:
            continue
        title = f"; {name} of {side.head.case} for {side.head.gpu}"
        before = _code(side.base, name) if side.base else None
        lines = now if before is None else list(difflib.unified_diff(before, now, "base", "head", lineterm=""))
        parts.append("\n".join([title, *(lines or ["; the same on both sides"])]))
    if not parts:
        names = {kernel.name for side in sides for kernel in side.head.kernels}
        raise UsageError(f"there is no code of a kernel {name!r}", hint=suggestion(name, sorted(names)))
    return "\n\n".join(parts)


def _code(network: GpuNetwork, name: str) -> list[str] | None:
    return next((list(k.assembly) for k in network.kernels if k.name == name and k.statistics), None)


def _networks(sides: Sequence[CodeSide]) -> str:
    named = [(side.head.case, side.head.code) for side in sides]
    named += [(side.against.title, side.before) for side in sides if side.before]
    rows = [
        (
            name,
            network.gpu,
            len(network.kernels),
            _millions(network.per_inference("instructions")),
            _millions(network.per_inference("instructions_run")),
            "?" if network.flops_per_byte is None else f"{network.flops_per_byte:.2f}",
            "-" if network.fewest_waves is None else network.fewest_waves,
            len(network.spilling) or "-",
            len(network.refused) or "-",
        )
        for name, network in named
    ]
    return table(rows, _NETWORKS, right=_NETWORKS[2:], spare=("flops/byte", "raw M", "kernels"))


def _words(side: CodeSide, profiles: Sequence[Profile]) -> list[str]:
    """Which operators differ most, and what profiles of a real GPU say of them."""
    if side.before is None or not compare(side.before, side.head.code):
        return []
    head = GpuBuild(side.head.case, side.head.case, side.head.code, work_of(side.head.artifact))
    base = GpuBuild(
        side.against.title,
        side.against.case or side.head.case,
        side.before,
        work_of(side.base.artifact) if side.base else head.work,
    )
    return list(in_words(head, base, profiles))


def _not_compared(side: CodeSide) -> str:
    """Return why a side with a base is not compared with it; empty if it is, or if it has none."""
    return judge_code(side.head.case, side.bases, side.head.code).why if side.against.title and not side.before else ""


def _kernels(network: GpuNetwork) -> str:
    heaviest = sorted(network.kernels, key=lambda kernel: -(kernel.per_inference("instructions_run") or 0))
    rows: list[tuple[object, ...]] = []
    for kernel in heaviest:
        statistics = kernel.statistics
        if statistics is None:
            rows.append((kernel.name, _count(kernel.threads), "refused"))
            continue
        weighted = "?" if statistics.instructions_run is None else statistics.instructions_run
        per_inference = _millions(kernel.per_inference("instructions_run"))
        counts = (statistics.waves, statistics.registers, statistics.spills or "-", statistics.texture_loads or "-")
        rows.append((kernel.name, _count(kernel.threads), statistics.instructions, weighted, per_inference, *counts))
    return table(rows, _KERNELS, right=_KERNELS[1:], spare=("textures", "registers", "raw", "threads"))


def _differences(side: CodeSide, base: MachineCode) -> str:
    diffs = compare(base, side.head.code)
    title = f"{side.head.case} on {side.head.gpu}, against {side.against.title}"
    if not diffs:
        return f"{title}: every kernel is the same, instruction by instruction"
    rows = [
        (diff.name, diff.change.value, *_side_by_side(diff)) for diff in diffs if diff.change is not CodeChange.OTHER
    ]
    others = len(diffs) - len(rows)
    parts = [title, *([table(rows, _DIFFS, right=_DIFFS[2:])] if rows else [])]
    parts += [f"{others} more have other code that counts the same (--json names them)"] if others else []
    return "\n\n".join(parts)


def _side_by_side(diff: KernelDiff) -> tuple[str, ...]:
    sides = (diff.base, diff.head)

    def both(field: str) -> str:
        values = [getattr(side, field, None) for side in sides]
        return " → ".join(dict.fromkeys("-" if value is None else str(value) for value in values))

    runs = [_millions(side.instructions_run_per_inference) if side else "-" for side in sides]
    return (*runs, both("waves"), both("spills"))


def _refusals(network: GpuNetwork) -> str:
    lines = [f"{kernel.name}: {why.outcome}: {why}" for kernel in network.kernels if (why := kernel.failure)]
    return "\n  ".join([f"{network.case} on {network.gpu}", *lines])


def _millions(count: int | None) -> str:
    return "?" if count is None else f"{count / 1e6:,.2f}"


def _count(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


@dataclass(frozen=True)
class ComparisonBase:
    """What a case is compared with."""

    title: str
    artifact: str = ""
    """Key of what was built; empty if only its numbers are known."""
    codes: tuple[MachineCode, ...] = ()
    """Numbers that were kept of it."""
    case: str = ""
    """Id of the case, if it is another one."""
    outcome: str = ""
    """Outcome of the case on the device of a record."""


@dataclass(frozen=True)
class CodeQuestion:
    """What is to be compiled, for which GPUs, and compared with what."""

    what: CaseOptions
    gpus: Sequence[str]
    release: str | None
    against: str | None
    records: Path | None
    """File that gets a record of each case."""
    device: str
    config: Path
    """asv's configuration of a compiler's repository."""


def sides_of(toolchain: MesaToolchain, asked: CodeQuestion) -> tuple[list[CodeSide], list[str]]:
    """Return the cases on each GPU, each with what it is compared with; and why the others were not built."""
    with Screen() as screen:
        if asked.release:
            builds = _of_revision(asked.release, case_ids(asked.what), asked, screen)
        else:
            builds = build_only(asked.what.request(), asked.device, screen)
        keys = {build.case.id: build.artifact for build in builds if build.artifact}
        other = _opposite(asked.against, list(keys), asked, screen) if asked.against and keys else {}
        screen.say(f"compiling the kernels of {counted(len(keys), 'case')} for {', '.join(asked.gpus)}")
        heads = networks(toolchain, keys, asked.gpus)
        find = Store(cache_root(), "artifacts").find  # of what is not in the cache there are the kept numbers, or none
        there = {case: base.artifact for case, base in other.items() if base.artifact and find(base.artifact)}
        bases = networks(toolchain, there, asked.gpus)
    if asked.records:
        file, run, as_shipped = RecordFile(asked.records), new_id(), asked.what.quirks.as_shipped
        for build in builds:
            codes, refused = codes_of([head for head in heads if head.case == build.case.id])
            file.append(code_record(build, codes, refused, toolchain.identity, as_shipped=as_shipped, run=run))
    sides = []
    for head in heads:
        against = other.get(head.case, ComparisonBase(asked.against or ""))
        base = next((base for base in bases if (base.case, base.gpu) == (head.case, head.gpu)), None)
        sides.append(CodeSide(head, against, base, (*against.codes, *([base.code] if base else []))))
    return sides, [f"{build.case.id}: {build.result}" for build in builds if not build.artifact]


def check(against: str) -> None:
    """Raise UsageError for what cannot be compared with, before anything is built."""
    if Path(against).suffix == ".jsonl" and not Path(against).is_file():
        raise UsageError(f"there is no {against}", hint=f"`adreno-bench isa --records {against}` makes it")
    if not (Path(against).is_file() or "-" in against or against[:1].isdigit()):
        what = "no file of records, no case and no release of TVM"
        raise UsageError(f"{against} is {what}", hint=f"known releases are {', '.join(RELEASES)}")


def _opposite(against: str, cases: Sequence[str], asked: CodeQuestion, screen: Screen) -> dict[str, ComparisonBase]:
    """Return what each case is compared with, by case. Raises UsageError if there is nothing."""
    if Path(against).is_file():
        bases = _of_records(Path(against), cases)
    elif "-" in against:
        bases = _of_cases(against, cases, asked, screen)
    else:
        builds = _of_revision(against, cases, asked, screen)
        bases = {
            build.case.id: ComparisonBase(f"{build.case.id} of {against}", build.artifact)
            for build in builds
            if build.artifact
        }
    if not bases:
        raise UsageError(f"{against} has nothing to compare {', '.join(cases)} with", hint="choose other cases")
    return bases


def _of_records(file: Path, cases: Sequence[str]) -> dict[str, ComparisonBase]:
    """Return what the newest records say: their numbers, and the artifact for what has none."""
    with open_index(file) as index:
        records = index.every(lambda case: case in cases)
    codes: dict[str, dict[tuple[str, str], MachineCode]] = {}
    for record in records:
        codes.setdefault(record.case, {}).update((code.series, code) for code in codes_in(record))
    newest = {record.case: record.artifact for record in records}
    outcomes = {record.case: _describe_outcome(record) for record in records if not record.standalone}
    return {
        case: ComparisonBase(f"{case} of {file}", key, tuple(codes[case].values()), outcome=outcomes.get(case, ""))
        for case, key in newest.items()
    }


def _describe_outcome(record: Record) -> str:
    """Return the outcome of a case on a device: PoCL, say, on a host without a GPU."""
    by = record.identity.driver or record.identity.gpu
    return f"{record.device} ({by}): {record.outcome.value}" + (f": {record.message}" if record.message else "")


def _of_cases(glob: str, cases: Sequence[str], asked: CodeQuestion, screen: Screen) -> dict[str, ComparisonBase]:
    """For each case, the match with the same model that has most else in common with it."""
    what = asked.what
    request = Request.read(what.suite, [glob], what.quirks, models=what.models, schedules=what.schedules)
    keys = {build.case: build.artifact for build in build_only(request, asked.device, screen) if build.artifact}

    def shared(case: Case, other: Case) -> int:
        return (case.precision == other.precision) + (case.tuning == other.tuning)

    bases = {}
    for case in map(Case.parse, cases):
        others = [other for other in keys if other.model == case.model and other != case]
        if others:
            chosen = max(others, key=lambda other: shared(case, other))
            bases[case.id] = ComparisonBase(chosen.id, keys[chosen], case=chosen.id)
    return bases


def _of_revision(word: str, cases: Sequence[str], asked: CodeQuestion, screen: Screen) -> list[CompiledCase]:
    """Return what another release, or a commit, makes of the cases, in an environment of its own."""
    from harness.tools.shared.toolchain import Toolchain

    cache, options = cache_root(), on_each_revision(asked.what, asked.device)
    toolchain = Toolchain.of(revision(word, asked.config, cache), cache, options, screen.say)
    kinds = {kind.outcome: kind for kind in (CompilerCrash, CompileTimeout)}
    release = RELEASES.get(find_release(word) or "")
    by = Releases(tvm=release.tvm, ffi=release.ffi[0]) if release else None
    builds = []
    for case, build in toolchain.build(cases).items():
        failure = kinds.get(build.outcome.value, CompileFailure)(build.message or f"{word} made no library of it")
        result = load_artifact(cache, build.artifact) if build.library else None
        builds.append(CompiledCase(Case.parse(case), result or failure, build.quirks, by))
    return builds
