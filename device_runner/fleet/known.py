"""Who devices turned out to be when they were last opened, so that a label can be looked up without opening them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from device_runner.device import Identity


def remember(name: str, identity: Identity, cache: Path) -> None:
    """Keep who a device is. Atomic, and written only if it changed."""
    if recall(name, cache) == identity:
        return
    file = _file(name, cache)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(asdict(identity)), encoding="utf-8")
    temporary.replace(file)


def recall(name: str, cache: Path) -> Identity | None:
    """Who a device was when it was last opened; None if it never was."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Identity).validate_json(_file(name, cache).read_bytes())
    except (OSError, ValidationError):
        return None


def _file(name: str, cache: Path) -> Path:
    return cache / "identities" / f"{quote(name, safe='')}.json"
