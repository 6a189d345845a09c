"""What the compiler makes of a case on both sides of a change."""

from __future__ import annotations

import difflib


def kernels_diff(old: str, new: str, names: tuple[str, str]) -> list[str]:
    """The unified difference of two OpenCL sources, without line ends; empty if they are the same.

    Declarations are left out: each stands again where the kernel begins.
    """
    was, now = (f"{name}.cl" for name in names)
    return list(difflib.unified_diff(_kernels(old), _kernels(new), was, now, lineterm=""))


def _kernels(source: str) -> list[str]:
    return [line for line in source.splitlines() if not (line.startswith("__kernel") and line.endswith(";"))]


def bounded(lines: list[str], most: int, width: int) -> list[str]:
    """As much as a screen takes; the last line says how much was left out."""
    short = [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines[:most]]
    return [*short, f"... and {len(lines) - most} more lines"] if len(lines) > most else short
