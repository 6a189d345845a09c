"""The gate of machine code. Its numbers have no noise, so they are compared as they are, and no statistics are asked.

A verdict is of a case on one GPU. The instructions of an inference are summed over all kernels, because a compiler that
fuses differently has other kernels. Waves and spills are those of each kernel that both sides have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.base.outcome import ExitCode
from harness.base.tables import listed
from harness.judge.verdict import Verdict
from harness.tools.isa.code import CodeChange, KernelDiff, MachineCode, compare, find_matching

NAMES_LIMIT = 3
"""Kernels that a reason names; the others are counted."""


@dataclass(frozen=True)
class CodeVerdict:
    """Verdict on the machine code of one case for one GPU."""

    case: str
    gpu: str
    verdict: Verdict
    why: str
    kernels: tuple[KernelDiff, ...] = ()
    """The kernels that differ, the largest difference first."""
    base: int | None = None
    """Weighted instructions of an inference."""
    head: int | None = None

    @property
    def change(self) -> float | None:
        """Change of its instructions, relative to the base."""
        return None if not self.base or self.head is None else self.head / self.base - 1


def judge_code(case: str, base: Sequence[MachineCode], head: MachineCode, tolerance: float = 0.0) -> CodeVerdict:
    """Compare a case with whichever of `base` is of its GPU and by its version of the compiler.

    `tolerance` is the part of the base's instructions that the sum may move by and still be the same.
    """
    before = find_matching(base, head)
    if before is None:
        return CodeVerdict(case, head.gpu, Verdict.NEW, _nothing_to_compare(base, head))
    diffs = tuple(compare(before, head))
    sums = before.per_inference("instructions_run"), head.per_inference("instructions_run")
    verdict, why = _verdict(diffs, *sums, tolerance)
    return CodeVerdict(case, head.gpu, verdict, why, diffs, *sums)


def exit_code(verdicts: Iterable[CodeVerdict]) -> ExitCode:
    """Exit code as for every gate: broken before heavier; a gate that compared nothing does not pass."""
    kinds = {verdict.verdict for verdict in verdicts}
    if Verdict.BROKEN in kinds:
        return ExitCode.WRONG_OR_BROKEN
    if Verdict.HEAVIER in kinds:
        return ExitCode.SLOWER
    if Verdict.INCONCLUSIVE in kinds:
        return ExitCode.UNDECIDED
    return ExitCode.GOOD if any(verdict.tells for verdict in kinds) else ExitCode.NOTHING_MEASURED


def _verdict(diffs: Sequence[KernelDiff], base: int | None, head: int | None, tolerance: float) -> tuple[Verdict, str]:
    for change, verdict in ((CodeChange.BROKEN, Verdict.BROKEN), (CodeChange.FIXED, Verdict.FIXED)):
        if named := [diff.name for diff in diffs if diff.change is change]:
            return verdict, f"the compiler {'refuses' if verdict is Verdict.BROKEN else 'takes'} {', '.join(named)}"
    if refused := [diff.name for diff in diffs if diff.base is None and diff.head and diff.head.message]:
        return Verdict.BROKEN, f"the compiler refuses {', '.join(refused)}"
    worse, better = _occupancy(diffs, worse=True), _occupancy(diffs, worse=False)
    if base is None or head is None:
        return _without_sums(diffs, worse)
    moved = abs(head - base) > tolerance * base
    if moved:
        (worse if head > base else better).insert(0, _instructions(diffs, base, head))
    if worse:
        return Verdict.HEAVIER, "; ".join(worse)
    return (Verdict.LIGHTER, "; ".join(better)) if better else (Verdict.SAME, _same(diffs, base, head))


def _without_sums(diffs: Sequence[KernelDiff], worse: Sequence[str]) -> tuple[Verdict, str]:
    """Compare kernels of which some loop has an unknown number of trips: equal code is still equal."""
    if worse:
        return Verdict.HEAVIER, "; ".join(worse)
    if not diffs:
        return Verdict.SAME, "the same code"
    return Verdict.INCONCLUSIVE, f"loops are not understood, and other code: {_list_names(diffs)}"


def _occupancy(diffs: Iterable[KernelDiff], *, worse: bool) -> list[str]:
    """Describe kernels that got worse in waves or spills, or better if not `worse`."""
    words = []
    for diff in diffs:
        if not (diff.base and diff.head and diff.head.launched):
            continue
        for what, before, now, sign in (
            ("waves", diff.base.waves, diff.head.waves, -1),
            ("spills", diff.base.spills, diff.head.spills, 1),
        ):
            if before is not None and now is not None and before != now and ((now - before) * sign > 0) is worse:
                words.append(f"{diff.name}: {what} {before} → {now}")
    return words


def _instructions(diffs: Sequence[KernelDiff], base: int, head: int) -> str:
    """Return the sum's change, with the kernels that moved it its way, and those that moved it the other way."""
    up = head > base
    moved = [diff for diff in diffs if diff.weight]
    along = [diff for diff in moved if (diff.growth > 0) is up]
    against = [diff for diff in moved if diff not in along]
    text = f"instructions {percent(head / base - 1) if base else f'0 → {head:,}'}: {_list_names(along)}"
    return f"{text}; {'lighter' if up else 'heavier'} all the same: {_list_names(against)}" if against else text


def percent(share: float) -> str:
    """Return a relative change with its sign, however small it is: there is no noise that would hide it."""
    return f"{100 * share:+.3g} %"


def _list_names(diffs: Sequence[KernelDiff]) -> str:
    return listed((diff.name for diff in diffs), NAMES_LIMIT)


def _same(diffs: Sequence[KernelDiff], base: int, head: int) -> str:
    if base != head:
        return f"instructions {percent(head / base - 1)}, within the tolerance: {_list_names(diffs)}"
    return f"other code that counts the same: {_list_names(diffs)}" if diffs else "the same code"


def _nothing_to_compare(base: Sequence[MachineCode], head: MachineCode) -> str:
    others = sorted({code.compiler for code in base if code.gpu == head.gpu})
    if others:
        return f"the base is by {', '.join(others)}, which is another series, and is never compared"
    return f"the base has no code for {head.gpu}"
