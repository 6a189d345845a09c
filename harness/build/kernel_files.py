"""The OpenCL kernels of an artifact as files, one for each, to be opened by an engineer."""

from __future__ import annotations

import re
from pathlib import Path

from device_runner.files import write_whole
from device_runner.store import Store
from harness.build.artifact import KERNELS

FOLDER = "kernels"
"""Beside the library, so that what is pruned takes its kernels along."""

_BEGINNING = re.compile(r"^// Function: (\w+)$", re.MULTILINE)
"""Before each kernel. TVM's runtime, too, cuts the source after it, and hands the device one piece at a time."""


def pieces(source: str) -> dict[str, str]:
    """What the device compiles for each kernel, by the kernel's name: lines count as in the device's build log."""
    found = list(_BEGINNING.finditer(source))
    ends = [*(match.start() for match in found[1:]), len(source)]
    return {match[1]: source[match.end() + 1 : end] for match, end in zip(found, ends, strict=True)}


def kernel_files(root: Path, artifact: str) -> list[Path] | None:
    """The kernels of an artifact below a cache root, one file each, written when first asked for.

    None if the artifact is not in the store, or was never as far as to have kernels.
    """
    folder = Store(root, "artifacts").find(artifact)
    if folder is None or not (folder / KERNELS).exists():
        return None
    texts = pieces((folder / KERNELS).read_text(encoding="utf-8"))
    files = {folder / FOLDER / f"{name}.cl": text for name, text in texts.items()}
    return [file if _says(file, text) else write_whole(file, text) for file, text in files.items()]


def _says(file: Path, text: str) -> bool:
    """Whether the file is there as this version writes it."""
    return file.exists() and file.read_text(encoding="utf-8") == text
