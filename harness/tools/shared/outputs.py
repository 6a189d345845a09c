"""Folders and pages that a command writes when it has measured: one that cannot be written is refused before."""

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


def require_page(file: Path) -> None:
    """Raise UsageError unless a file that drawings go to is named as a page."""
    if file.suffix != ".html":
        raise UsageError(f"{file} is not an HTML page", hint=f"name it {file.stem}.html; a browser can print it")
