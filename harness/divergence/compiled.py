"""What a piece of a network was compiled to, and where the whole network has the same kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.build.artifact import kernel_files
from harness.paths.kernels import Kernel, kernels

if TYPE_CHECKING:
    from harness.run.record import Record

_NAME = re.compile(r"(?:fused_)?(\w+?)_kernel(?:_(\d+))?")
"""How TVM names a kernel: after the operators that it computes, and which of several for them it is."""


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel of a piece."""

    file: Path
    same: str = ""
    """The kernel of the whole network that has the same code; empty if none has."""
    alike: tuple[str, ...] = ()
    """Else those whose names begin with the same operators: the whole network may fuse them with more."""


def compiled_kernels(piece: Record, whole: Record, cache: Path) -> list[CompiledKernel]:
    """The kernels of a piece, each with those of the whole network that are like it."""
    there = {kernel.code: kernel.name for _, kernel in _kernels(whole, cache)}

    def compared(file: Path, kernel: Kernel) -> CompiledKernel:
        same = there.get(kernel.code, "")
        return CompiledKernel(file, same, () if same else begin_alike(kernel.name, there.values()))

    return [compared(file, kernel) for file, kernel in _kernels(piece, cache)]


def begin_alike(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """The kernels whose names begin with the operators of another's. TVM numbers equal names: `add`, `add1`."""
    operators, place = _operators(name)
    return tuple(
        other for other in others if _operators(other)[1] == place and _operators(other)[0].startswith(operators)
    )


def _operators(name: str) -> tuple[str, str]:
    found = _NAME.fullmatch(name)
    operators, place = (found[1], found[2] or "") if found else (name, "")
    return re.sub(r"\d+(?=_|$)", "", operators) + "_", place


def _kernels(record: Record, cache: Path) -> list[tuple[Path, Kernel]]:
    files = kernel_files(cache, record.artifact) or ()
    return [(file, kernel) for file in files for kernel in kernels(file.read_text(encoding="utf-8"))]
