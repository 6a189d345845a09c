"""A copy of this harness as it is now, for other interpreters to run: an edit meanwhile changes no measurement."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from device_runner.store import Store, keep, key_of, sha256_of
from harness.compiler.installed import HARNESS, harness_version

PACKAGES = ("harness", "device_runner")
COPY_TIMEOUT_S = 120.0


@functools.cache
def snapshot(cache: Path) -> Path:
    """A folder that, on an interpreter's path, makes this very harness importable there.

    Made once for its content, and looked at once in a process: all that it starts run the same.
    """
    root = Path(__file__).resolve().parents[2]
    files = [
        file
        for package in PACKAGES
        for file in sorted((root / package).rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    ]
    key = key_of({str(file.relative_to(root)): sha256_of(file) for file in files})

    def make(scratch: Path) -> None:
        for file in files:
            copy = scratch / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        _describe(scratch)

    folder = Store(cache, "harness").obtain(key, make, COPY_TIMEOUT_S)
    keep(folder)
    return folder


def _describe(folder: Path) -> None:
    """What `importlib.metadata` needs to know of it: records name the harness's version."""
    about = folder / f"{HARNESS.replace('-', '_')}-{harness_version()}.dist-info"
    about.mkdir()
    text = f"Metadata-Version: 2.1\nName: {HARNESS}\nVersion: {harness_version()}\n"
    (about / "METADATA").write_text(text, encoding="utf-8")
