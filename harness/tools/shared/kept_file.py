"""A file that is made once, and again if it is damaged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path

from device_runner.files import write_whole
from device_runner.store import is_confirmed

log = logging.getLogger(__name__)


def keep_file(file: Path, make: Callable[[], bytes]) -> Path:
    """Return a file, which `make` fills if it is not there or not what was kept. Its hash lies beside it.

    Raises what `make` raises, OSError.
    """
    sums = file.with_suffix(".json")
    with contextlib.suppress(OSError, ValueError):
        if is_confirmed(file, json.loads(sums.read_text(encoding="utf-8"))):
            return file
        if file.exists():
            log.warning("%s was damaged in the store: it is made again", file)
    data = make()
    write_whole(file, data)
    write_whole(sums, json.dumps(hashlib.sha256(data).hexdigest()))
    return file
