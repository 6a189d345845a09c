"""The machine code of two builds in words, by operator, beside the time that a real GPU took for the same operators.

Kernels are called differently on each path, so those of one operator are taken together, as in a profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.base.tables import grouped
from harness.compile.compiler.tir import OperatorWork
from harness.tools.isa.code import KernelCode, MachineCode, total
from harness.tools.shared.kernels.operators import OperatorKind, kind_of, label_of
from harness.tools.shared.kernels.profile import Profile, function_of

MOST_WORDS = 3
_MANY = 100_000_000


@dataclass(frozen=True)
class GpuBuild:
    """One build of a network, for one GPU, with what is known of it."""

    title: str
    case: str
    code: MachineCode
    work: Sequence[OperatorWork]
    """What its operators have to do, by function; empty if that was not noted."""


@dataclass(frozen=True)
class OperatorCode:
    """The kernels of one kind of operator."""

    label: str
    kernels: tuple[KernelCode, ...]

    @property
    def run(self) -> int | None:
        """Weighted instructions of an inference; None if they are not known of a kernel."""
        return total([kernel.instructions_run_per_inference for kernel in self.kernels])

    @property
    def waves(self) -> int | None:
        """The fewest of the kernel that runs most instructions, whose waves matter most."""
        kernels = [k for k in self.kernels if k.launched and k.waves is not None]
        return max(kernels, key=lambda kernel: kernel.instructions_run_per_inference or 0).waves if kernels else None

    @property
    def spills(self) -> int:
        """Spills of all its kernels."""
        return sum(kernel.spills or 0 for kernel in self.kernels if kernel.launched)


@dataclass(frozen=True)
class Pair:
    """One kind of operator in two builds; None in one that does that work elsewhere, or not at all."""

    kind: OperatorKind
    head: OperatorCode | None
    base: OperatorCode | None

    @property
    def label(self) -> str:
        """What it is called."""
        operator = self.head or self.base
        assert operator
        return operator.label

    @property
    def more(self) -> int:
        """Additional weighted instructions of the head, as far as known."""
        return ((self.head.run or 0) if self.head else 0) - ((self.base.run or 0) if self.base else 0)


def operators_of(build: GpuBuild) -> dict[OperatorKind, OperatorCode]:
    """Return the kernels of a build by the kind of their operator."""
    work = {operator.function: operator for operator in build.work}

    def of(kernel: KernelCode) -> tuple[str, OperatorWork | None]:
        function = function_of(kernel.name)
        return function, work.get(function)

    kinds = grouped(build.code.kernels, lambda kernel: kind_of(*of(kernel)))
    return {kind: OperatorCode(label_of(*of(mine[0])), tuple(mine)) for kind, mine in kinds.items()}


def pairs_of(head: GpuBuild, base: GpuBuild) -> list[Pair]:
    """Return all kinds of operators of two builds, those whose instructions differ most first."""
    here, there = operators_of(head), operators_of(base)
    pairs = [Pair(kind, here.get(kind), there.get(kind)) for kind in dict.fromkeys((*here, *there))]
    return sorted(pairs, key=lambda pair: (-abs(pair.more), pair.label))


def times_ms(profile: Profile) -> dict[OperatorKind, float]:
    """Return what each kind of operator took on a real GPU."""
    return {kind: sum(operator.ms for operator in alike) for kind, alike in profile.by_kind.items()}


def in_words(head: GpuBuild, base: GpuBuild, profiles: Sequence[Profile]) -> Iterator[str]:
    """Which operators differ most in instructions, waves or spills, and what the profiles say of the same ones."""
    pairs, timed = pairs_of(head, base), _real_times(head, base, profiles)
    yield _totals(head, base)
    instructions = [pair for pair in pairs if pair.more][:MOST_WORDS]
    others = [pair for pair in pairs if pair not in instructions and _occupancy(pair)][:MOST_WORDS]
    for pair in (*instructions, *others):
        yield (
            "; ".join(filter(None, [f"{pair.label}: {_instructions(pair)}", _occupancy(pair), _time(pair, timed)]))
            + "."
        )
    if timed and (agreement := _agreement(pairs, timed)):
        yield agreement


@dataclass(frozen=True)
class _RealTimes:
    """Both builds on one real GPU."""

    gpu: str
    head: dict[OperatorKind, float]
    base: dict[OperatorKind, float]


def _real_times(head: GpuBuild, base: GpuBuild, profiles: Sequence[Profile]) -> _RealTimes | None:
    """Profiles of one GPU that has both cases, if there are two."""
    for mine in profiles:
        for other in profiles:
            cases = (mine.case, other.case) == (head.case, base.case)
            if cases and mine is not other and mine.identity_key == other.identity_key:
                return _RealTimes(mine.gpu, times_ms(mine), times_ms(other))
    return None


def _totals(head: GpuBuild, base: GpuBuild) -> str:
    now, before = (build.code.per_inference("instructions_run") for build in (head, base))
    line = (
        f"{head.title} on {head.code.gpu} runs {_millions(now)} weighted instructions, {base.title} {_millions(before)}"
    )
    return f"{line} ({now / before:.3g} times)." if now is not None and before else f"{line}."


def _instructions(pair: Pair) -> str:
    if pair.head is None or pair.base is None:
        side, operator = ("here", pair.head) if pair.head else ("there", pair.base)
        return f"only {side}, {_millions(operator.run if operator else None)}"
    now, before = pair.head.run, pair.base.run
    ratio = f" ({now / before:.3g} times)" if now is not None and before else ""
    return f"{_millions(now)} against {_millions(before)}{ratio}"


def _occupancy(pair: Pair) -> str:
    """Return what differs in waves and spills; empty if nothing does."""
    if pair.head is None or pair.base is None:
        return ""
    waves = f"{pair.head.waves} waves against {pair.base.waves}" if pair.head.waves != pair.base.waves else ""
    spills = f"{pair.head.spills} spills against {pair.base.spills}" if pair.head.spills != pair.base.spills else ""
    return ", ".join(filter(None, (waves, spills)))


def _time(pair: Pair, timed: _RealTimes | None) -> str:
    if timed is None:
        return ""
    now, before = timed.head.get(pair.kind), timed.base.get(pair.kind)
    if now is None or before is None:
        return f"{timed.gpu} tells nothing of it on both sides"
    agrees = "" if _agree(pair, now, before) is not False else ", the other way round"
    return f"{timed.gpu} took {now:.3g} ms against {before:.3g}{agrees}"


def _agree(pair: Pair, now: float, before: float) -> bool | None:
    """Return whether the side that runs more instructions is the slower one, too; None if one side is not known."""
    if pair.head is None or pair.base is None or pair.head.run is None or pair.base.run is None or not pair.more:
        return None
    return (pair.more > 0) is (now > before)


def _agreement(pairs: Sequence[Pair], timed: _RealTimes) -> str:
    both = [
        (pair, timed.head[pair.kind], timed.base[pair.kind])
        for pair in pairs
        if pair.kind in timed.head and pair.kind in timed.base
    ]
    timings = [
        (agree, abs(now - before)) for pair, now, before in both if (agree := _agree(pair, now, before)) is not None
    ]
    if not timings:
        return ""
    right, time = sum(agree for agree, _ in timings), sum(ms for _, ms in timings)
    share = sum(ms for agree, ms in timings if agree) / time if time else 0.0
    return (
        f"Of {len(timings)} operators that both have, the side with more instructions is the slower one on {timed.gpu} "
        f"in {right}; by the time that they differ in, in {share:.0%}."
    )


def _millions(count: int | None) -> str:
    if count is None:
        return "an unknown number of"
    return f"{count / 1e6:,.0f} M" if count >= _MANY else f"{count / 1e6:.3g} M"
