"""The identities of devices as of when they were last opened, so that labels can be looked up without opening them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from device_runner.device import Identity
from device_runner.files import write_whole


def remember(name: str, identity: Identity, cache: Path) -> None:
    """Keep who a device is. Atomic, and written only if it changed."""
    if recall(name, cache) == identity:
        return
    write_whole(_file(name, cache), json.dumps(asdict(identity)))


def recall(name: str, cache: Path) -> Identity | None:
    """Who a device was when it was last opened; None if it never was."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Identity).validate_json(_file(name, cache).read_bytes())
    except (OSError, ValidationError):
        return None


def _file(name: str, cache: Path) -> Path:
    return cache / "identities" / f"{quote(name, safe='')}.json"
