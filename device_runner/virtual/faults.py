"""What can be made to go wrong on the virtual phone, and how that is changed while it runs.

The faults stand in one JSON file that the daemon looks at before each step they could spoil, so a test (or a person
with an editor) injects one in mid-run without a connection to the daemon.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from device_runner.failures import RigFailure

POLL_S = 0.05

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Faults:
    """One set of faults; the default is a healthy phone."""

    drop_after_bytes: int | None = None
    """Cut the transport when one SEND has brought this many bytes."""
    full_after_bytes: int | None = None
    """Report ENOSPC when one SEND has brought this many bytes."""
    send_error: str = ""
    """Refuse every SEND with this text."""
    bytes_per_s: int | None = None
    """Speed of the link from the host, for data of SEND."""
    frozen: bool = False
    """Stop reading and answering, with connections left open: adb goes on saying `device`."""
    offline: bool = False
    """Cut every transport and refuse new ones, as if unplugged."""
    unauthorized: bool = False
    """Ask new transports for a key and never accept it."""
    features: tuple[str, ...] | None = None
    """Announce these features in place of all, to new transports; `("cmd",)` is a phone that knows only version 1."""
    crash_session_after_s: float | None = None
    """Kill the worker of `tvm_rpc` (SIGKILL) this long after its session began."""


def write(path: Path, faults: Faults) -> None:
    """Make these the faults of the phone whose file this is. Atomic."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(asdict(faults), indent=1) + "\n")
    partial.replace(path)


def read(path: Path) -> Faults:
    """The faults of a file, a healthy phone without one. Raises RigFailure naming a key or a form it does not know."""
    try:
        values = json.loads(path.read_text())
    except FileNotFoundError:
        return Faults()
    except ValueError as error:
        raise RigFailure(f"{path} is not JSON ({error})", hint="delete it for a healthy phone") from None
    known = {f.name for f in fields(Faults)}
    if not isinstance(values, dict) or not known >= values.keys():
        raise RigFailure(f"{path} names unknown faults", hint=f"known are {', '.join(sorted(known))}")
    features = values.get("features")
    return Faults(**{**values, "features": None if features is None else tuple(features)})


class FaultFile:
    """The daemon's view of the file: read again whenever it changed, kept as it was while it is unreadable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = (0, 0, 0)
        self._faults = Faults()

    @property
    def now(self) -> Faults:
        """The faults at this moment."""
        try:
            found = self._path.stat()
        except OSError:
            return self._faults
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._faults = read(self._path)
            except RigFailure as failure:
                log.error("faults left as they were: %s", failure)
        return self._faults

    async def thawed(self) -> None:
        """Return when the phone is not frozen."""
        while self.now.frozen:
            await asyncio.sleep(POLL_S)
