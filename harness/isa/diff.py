"""Two builds of a network on one GPU, kernel by kernel: exact numbers, so any difference is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from harness.isa.network import Network, NetworkKernel


class Change(str, Enum):
    """What became of a kernel."""

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

    base: NetworkKernel | None
    head: NetworkKernel | None
    change: Change

    @property
    def name(self) -> str:
        """Of the kernel, on either side."""
        kernel = self.head or self.base
        assert kernel
        return kernel.name

    @property
    def weight(self) -> int:
        """By how many instructions of an inference the sides differ, as far as that is known."""
        return abs(_run(self.head) - _run(self.base))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "change": self.change.value, "base": _plain(self.base), "head": _plain(self.head)}


def compare(base: Network, head: Network) -> list[KernelDiff]:
    """The kernels that differ, those that differ most first. Kernels are aligned by name, then by their source."""
    pairs = _aligned(base.kernels, head.kernels)
    found = [KernelDiff(old, new, change) for old, new in pairs if (change := _change(old, new))]
    return sorted(found, key=lambda one: (-one.weight, one.name))


def _aligned(
    base: Sequence[NetworkKernel], head: Sequence[NetworkKernel]
) -> list[tuple[NetworkKernel | None, NetworkKernel | None]]:
    old, new = {kernel.name: kernel for kernel in base}, {kernel.name: kernel for kernel in head}
    pairs: list[tuple[NetworkKernel | None, NetworkKernel | None]] = [
        (old.pop(name), new.pop(name)) for name in list(new) if name in old
    ]
    by_code = {_unnamed(kernel): name for name, kernel in old.items()}
    for kernel in new.values():
        same = by_code.pop(_unnamed(kernel), None)
        pairs.append((old.pop(same) if same else None, kernel))
    return [*pairs, *((kernel, None) for kernel in old.values())]


def _unnamed(kernel: NetworkKernel) -> str:
    return kernel.compiled.source.text.replace(kernel.name, "kernel")


def _change(base: NetworkKernel | None, head: NetworkKernel | None) -> Change | None:
    """None if nothing changed."""
    if base is None:
        return Change.ADDED
    if head is None:
        return Change.REMOVED
    if base.statistics is None or head.statistics is None:
        was, now = base.statistics is None, head.statistics is None
        return None if was and now else Change.BROKEN if now else Change.FIXED
    old, new = base.per_inference("instructions_run"), head.per_inference("instructions_run")
    if old is None or new is None:
        return Change.UNKNOWN if base.statistics != head.statistics else None
    signs = {
        _sign(new - old),
        _sign(base.statistics.waves - head.statistics.waves),
        _sign(head.statistics.spills - base.statistics.spills),
    } - {0}
    if not signs:
        return Change.OTHER if base.compiled.assembly != head.compiled.assembly else None
    return Change.MIXED if len(signs) > 1 else Change.HEAVIER if signs == {1} else Change.LIGHTER


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _run(kernel: NetworkKernel | None) -> int:
    return (kernel.per_inference("instructions_run") or 0) if kernel else 0


def _plain(kernel: NetworkKernel | None) -> dict[str, Any] | None:
    if kernel is None:
        return None
    told: dict[str, Any] = {"name": kernel.name, "source": kernel.compiled.source.digest}
    told["instructions_run_per_inference"] = kernel.per_inference("instructions_run")
    if kernel.statistics:
        told |= {field: getattr(kernel.statistics, field) for field in ("instructions", "waves", "spills")}
    return told
