"""A device behind an adb server as a `Transport`: adb, and a folder of ours on the device that files are brought to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from device_runner.device import Pushed
from device_runner.transport.adb import Adb
from device_runner.transport.push import Progress, push


@dataclass(frozen=True)
class AdbTransport(Adb):
    """Reaches a device through adb; our files on it lie under `root`."""

    root: str
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """The serial."""
        return self.serial

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> Pushed:
        """Push it to a name made of the hash: dlopen does not load a library again from a path that it has loaded.

        Its endings stay, at most two of letters: they tell what it is.
        """
        ending = re.search(r"(\.[a-z]+){0,2}$", file.name)
        destination = f"{self.root}/files/{sha256}{ending[0] if ending else ''}"
        return push(self, file, sha256, destination, timeout_s=timeout_s, progress=self.progress)
