"""A kernel's source as the compiler is given it: without the declarations of the other kernels of its network."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from harness.build.kernel_files import pieces

_DECLARATION = re.compile(r"__kernel\b[^{;]*;")


@dataclass(frozen=True)
class KernelSource:
    """One kernel."""

    name: str
    text: str
    original: str
    """As the device compiles it, with the declarations: its lines are those of the file that `show --kernels` names."""

    @property
    def digest(self) -> str:
        """The same for the same kernel in any network."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    def original_line(self, line: int) -> int:
        """The line in the original text of a line of `text`, counted from 1; 0 if there is none."""
        kept = [number for number, one in enumerate(self.original.splitlines(), 1) if not _is_declaration(one)]
        return kept[line - 1] if 0 < line <= len(kept) else 0


def sources(text: str) -> list[KernelSource]:
    """The kernels of a network's OpenCL source, as TVM writes it."""
    return [KernelSource(name, _without_declarations(piece), piece) for name, piece in pieces(text).items()]


def _without_declarations(text: str) -> str:
    return "\n".join([line for line in text.splitlines() if not _is_declaration(line)] + [""])


def _is_declaration(line: str) -> bool:
    return bool(_DECLARATION.fullmatch(line.strip()))
