"""Folders that a command fills when it has measured: one that cannot be written is refused before."""

from __future__ import annotations

import functools
from pathlib import Path

from device_runner.files import what_else
from harness.base.failures import UsageError
from harness.cli.options import output_option, require_output


def require_output_folder(folder: Path | None) -> Path | None:
    """Return a folder that a command writes at its end. Raises UsageError at once if it cannot be written."""
    if folder and folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is {what_else(folder) or 'a file'}", hint="name a folder")
    return require_output(folder)


folder_option = functools.partial(output_option, callback=require_output_folder)
