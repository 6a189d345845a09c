"""The limits that a bundle is built for: those of a device like the one that it goes to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from device_runner.device import Identity
from harness.cli.record_filter import identity_like
from harness.compile.schedules.database import ScheduleOrigin, read

LIMITS = (
    "image2d_max_width",
    "image2d_max_height",
    "image_max_array_layers",
    "work_group_items",
    "local_memory_bytes",
)
"""What of a device decides how cases are built for it."""


def with_limits_of(identity: Identity, target: str, cache: Path) -> Identity:
    """`identity` with the limits of another device.

    `target` is a file of records, whose last one tells its device; a file of schedules that `tune` wrote; or the name
    of a device that was opened before. Raises UsageError if it is none of these.
    """
    file = Path(target)
    if file.is_file() and _is_schedules(file):
        return _tuned(identity, read(file).origin)
    source = identity_like(target, cache)
    return replace(identity, **{name: getattr(source, name) for name in LIMITS})


def _is_schedules(file: Path) -> bool:
    """Return whether its first line is that of a file of schedules."""
    with file.open("rb") as lines:
        try:
            first = json.loads(lines.readline())
        except ValueError:
            return False
    return isinstance(first, dict) and "limits" in first


def _tuned(identity: Identity, origin: ScheduleOrigin) -> Identity:
    threads = {name: getattr(origin, name) for name in ("work_group_items", "local_memory_bytes")}
    return replace(identity, **origin.limits.model_dump(), **threads)
