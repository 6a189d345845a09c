"""A device behind an adb server as a `Transport`: adb, and a folder of ours on the device that files are brought to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from device_runner.device import Pushed
from device_runner.transport.adb import Adb
from device_runner.transport.push import Progress, push


@dataclass(frozen=True)
class AdbTransport(Adb):
    """Reaches a device through adb; what we bring there lies under `root`."""

    root: str
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """The serial."""
        return self.serial

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> Pushed:
        """Under a name made of the hash, because dlopen takes a library of a known path for the one it has."""
        destination = f"{self.root}/files/{sha256}{file.suffix}"
        return push(self, file, sha256, destination, timeout_s=timeout_s, progress=self.progress)
