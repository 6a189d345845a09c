"""Whether a kernel's source is the same in two builds, whatever TVM calls it and its parameters there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from harness.paths.kernels import kernels

DIGITS = 16


def hashes_of(source: str) -> dict[str, str]:
    """The hash of each kernel's code by its name; neither its own name nor its parameters' count."""
    return {kernel.name: _hash(kernel.code) for kernel in kernels(source)}


def hash_of(names: Sequence[str], hashes: Mapping[str, str]) -> str:
    """The hash of several kernels, in their order; empty if the source of one is not known."""
    found = [hashes.get(name, "") for name in names]
    return _hash(" ".join(found)) if all(found) else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
