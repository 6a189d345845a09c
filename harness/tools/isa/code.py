"""What is kept of a network's machine code, and how two builds of it differ, kernel by kernel.

It is the part of a record that a later build is compared with. Its numbers are exact, so any difference is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.measure.records.record import Record


@dataclass(frozen=True)
class KernelCode:
    """One kernel for one GPU."""

    name: str
    source: str
    """Hash of its source, in which its own name does not count."""
    code: str
    """Hash of its machine code; empty if the compiler made none."""
    message: str = ""
    """Why it made none."""
    instructions: int | None = None
    """Issue slots of the code as it stands."""
    instructions_per_inference: int | None = None
    """The same for all threads of an inference; 0 if it is never launched, None if the threads are not known."""
    instructions_run_per_inference: int | None = None
    """The same, each instruction times the trips of the loops around it; None if those are not known either."""
    registers: int | None = None
    waves: int | None = None
    spills: int | None = None

    @property
    def launched(self) -> bool:
        """Whether an inference runs it, as far as is known."""
        return self.instructions_per_inference != 0


@dataclass(frozen=True)
class MachineCode:
    """All kernels of one case for one GPU, by one version of the compiler, which is part of what they are."""

    gpu: str
    compiler: str
    """Mesa's and LLVM's versions: numbers of another one are another series."""
    kernels: tuple[KernelCode, ...]
    flops_per_byte: float | None = None

    @property
    def series(self) -> tuple[str, str]:
        """What two have to share to be compared."""
        return self.gpu, self.compiler

    def per_inference(self, field: str) -> int | None:
        """Return the sum of a count over all kernels; None if it is not known of one of them."""
        return total([getattr(kernel, f"{field}_per_inference") for kernel in self.kernels])

    @property
    def fewest_waves(self) -> int | None:
        """Fewest waves of all kernels that are launched."""
        return min((k.waves for k in self.kernels if k.launched and k.waves is not None), default=None)

    @property
    def spilling(self) -> list[str]:
        """Kernels that are launched and keep values in memory because registers do not suffice."""
        return [kernel.name for kernel in self.kernels if kernel.launched and kernel.spills]

    @property
    def refused(self) -> list[KernelCode]:
        """Kernels of which the compiler made no code."""
        return [kernel for kernel in self.kernels if kernel.message]


@dataclass(frozen=True)
class CaseCode:
    """All machine code of one case: the part of a record that `adreno-bench isa` makes."""

    codes: tuple[MachineCode, ...]
    """One for each GPU."""


def codes_in(record: Record) -> tuple[MachineCode, ...]:
    """Return the machine code that a record has, often none."""
    part = record.part(CaseCode)
    return part.codes if part else ()


def total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is not known."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if len(numbers) == len(counts) else None


def find_matching(codes: Sequence[MachineCode], reference: MachineCode) -> MachineCode | None:
    """Return the one that may be compared: for the same GPU, by the same version of the compiler."""
    return next((code for code in codes if code.series == reference.series), None)


class CodeChange(str, Enum):
    """Change of a kernel."""

    HEAVIER = "heavier"
    """More instructions in an inference, fewer waves, or more spills, and none of them better."""
    LIGHTER = "lighter"
    MIXED = "mixed"
    """Better in one of them and worse in another."""
    OTHER = "other code"
    """The same in all of them, and not the same code."""
    BROKEN = "broken"
    """The compiler refuses it, and did not before."""
    FIXED = "fixed"
    UNKNOWN = "unknown"
    """A loop's trips, or the threads of a launch, are not known on one side, so instructions cannot be compared."""
    ADDED = "only in head"
    REMOVED = "only in base"


@dataclass(frozen=True)
class KernelDiff:
    """One kernel that is not the same on both sides."""

    base: KernelCode | None
    head: KernelCode | None
    change: CodeChange

    @property
    def name(self) -> str:
        """Name of the kernel, on either side."""
        kernel = self.head or self.base
        assert kernel
        return kernel.name

    @property
    def growth(self) -> int:
        """Head less base in instructions per inference, as far as they are known."""
        return _run(self.head) - _run(self.base)

    @property
    def weight(self) -> int:
        """Size of that difference, whichever way it goes."""
        return abs(self.growth)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        sides = {side: asdict(code) if code else None for side, code in (("base", self.base), ("head", self.head))}
        return {"name": self.name, "change": self.change.value, **sides}


def compare(base: MachineCode, head: MachineCode) -> list[KernelDiff]:
    """Return the kernels that differ, those that differ most first.

    Kernels are aligned by name, then by their source.
    """
    pairs = _align(base.kernels, head.kernels)
    diffs = [KernelDiff(old, new, change) for old, new in pairs if (change := _change(old, new))]
    return sorted(diffs, key=lambda diff: (-diff.weight, diff.name))


def _align(base: Sequence[KernelCode], head: Sequence[KernelCode]) -> list[tuple[KernelCode | None, KernelCode | None]]:
    old, new = {kernel.name: kernel for kernel in base}, {kernel.name: kernel for kernel in head}
    pairs: list[tuple[KernelCode | None, KernelCode | None]] = [
        (old.pop(name), new.pop(name)) for name in list(new) if name in old
    ]
    by_source = {kernel.source: name for name, kernel in old.items()}
    for kernel in new.values():
        same = by_source.pop(kernel.source, None)
        pairs.append((old.pop(same) if same else None, kernel))
    return [*pairs, *((kernel, None) for kernel in old.values())]


def _change(base: KernelCode | None, head: KernelCode | None) -> CodeChange | None:
    """Return the change of a kernel; None if nothing changed."""
    if base is None:
        return CodeChange.ADDED
    if head is None:
        return CodeChange.REMOVED
    if base.message or head.message:
        return None if base.message and head.message else CodeChange.BROKEN if head.message else CodeChange.FIXED
    signs = _signs(base, head)
    if signs is None:
        return None if replace(base, name=head.name, source=head.source) == head else CodeChange.UNKNOWN
    if not signs:
        return CodeChange.OTHER if base.code != head.code else None
    return CodeChange.MIXED if len(signs) > 1 else CodeChange.HEAVIER if signs == {1} else CodeChange.LIGHTER


def _signs(base: KernelCode, head: KernelCode) -> set[int] | None:
    """Return 1 if something is worse in head, -1 if something is better; None if the instructions are not known."""
    old, new = base.instructions_run_per_inference, head.instructions_run_per_inference
    if old is None or new is None:
        return None
    waves, spills = (base.waves or 0) - (head.waves or 0), (head.spills or 0) - (base.spills or 0)
    return {_sign(new - old), _sign(waves), _sign(spills)} - {0}


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _run(kernel: KernelCode | None) -> int:
    return (kernel.instructions_run_per_inference or 0) if kernel else 0
