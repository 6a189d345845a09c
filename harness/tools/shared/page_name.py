"""The name of a page that a person asks for."""

from __future__ import annotations

from pathlib import Path

from harness.base.failures import UsageError


def require_page(file: Path) -> None:
    """Raise UsageError unless a file that drawings go to is named as a page."""
    if file.suffix != ".html":
        hint = f"name it {file.stem}.html; a browser can print it"
        raise UsageError(f"{file} is not an HTML page", hint=hint)
