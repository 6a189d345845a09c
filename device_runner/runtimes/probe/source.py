"""Where a device's probe comes from, and whether it may be used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from device_runner.failures import Failure


class Probe:
    """The probe for one device: built when it is first needed, and not used again once it did harm."""

    def __init__(self, make: Callable[[], Path] | None) -> None:
        self._make = make
        self._made: tuple[Path, str] | None = None
        self.lacking = "" if make else "there is none for this device"
        """Why it is not used, in one line; empty if it is."""

    def ready(self) -> tuple[Path, str] | None:
        """The library and its sha256; None if it is lacking. A failure to build it is no reason to do without a run."""
        if self._make and self._made is None and not self.lacking:
            try:
                file = self._make()
                self._made = file, hashlib.sha256(file.read_bytes()).hexdigest()
            except (Failure, OSError) as failure:
                self.lacking = f"it could not be built: {failure}"
        return None if self.lacking else self._made
