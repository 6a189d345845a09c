"""The kernels of an artifact as files, one for each, beside its library."""

from __future__ import annotations

from pathlib import Path

from device_runner.files import write_whole
from device_runner.names import shorten
from device_runner.store import Store
from harness.compile.artifacts.artifact import KERNELS
from harness.tools.shared.kernel_source import pieces

KERNEL_FOLDER = "kernels"
"""Folder beside the library, so that what is pruned takes them along."""
_LONGEST_FILE = 200
"""Most characters of a kernel's file without its suffix; file systems take 255, and temporary names are longer."""


def kernel_files(root: Path, artifact: str) -> list[Path] | None:
    """Return the kernels of an artifact below a cache root, one file each, written when first asked for.

    None if the artifact is not in the store, or was never as far as to have kernels.
    """
    folder = Store(root, "artifacts").find(artifact)
    if folder is None or not (folder / KERNELS).exists():
        return None
    texts = pieces((folder / KERNELS).read_text(encoding="utf-8"))
    files = {folder / KERNEL_FOLDER / f"{shorten(name, _LONGEST_FILE)}.cl": text for name, text in texts.items()}
    return [file if _says(file, text) else write_whole(file, text) for file, text in files.items()]


def _says(file: Path, text: str) -> bool:
    """Return whether the file is there as this version writes it."""
    return file.exists() and file.read_text(encoding="utf-8") == text
