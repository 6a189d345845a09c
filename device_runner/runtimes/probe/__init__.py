"""The probe: a small TVM module of ours that tells what TVM's runtimes do not tell of a device's OpenCL.

It is C against tvm-ffi's C interface alone, so one source serves this host, phones and boards, whichever OpenCL runtime
TVM has there. It is pushed and loaded like any artifact, and registers nothing. What it answers is read in `answers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from device_runner.failures import Failure
from device_runner.runtimes.c_code import SHARED, CCode
from device_runner.store import sha256_of

ENDING = ".probe.so"
"""Ending of such a file's name, also on the device: it has no kernels."""
BASE = Path(__file__).parent / "base"
"""What modules that ask a process for its OpenCL have in common."""


def c_module(name: str, title: str, sources: Path) -> CCode:
    """Return a TVM module of our own, built for devices from the C files of the folder of that `name`."""
    return CCode(
        f"{name}{ENDING}",
        title,
        name,
        (sources, BASE, SHARED),
        ("-fPIC", "-fvisibility=hidden"),
        # It stays loaded until the process ends: TVM's runtime calls through the probe once that counts programs.
        links=("-Wl,-z,nodelete",),
        libraries=("-ltvm_ffi", "-ldl"),
    )


PROBE = c_module("probe", "the probe", Path(__file__).parent / "src")
library = PROBE.file


MOST_BROKEN = 2
"""After so many processes in a row that ended or fell silent in one function, the probe is not asked again."""


class DeviceProbe:
    """The probe for one device: built when it is first needed, and not used again once it did harm twice in a row.

    Once may be the end of a server that somebody killed while the probe was asked.
    """

    def __init__(self, make: Callable[[], Path] | None) -> None:
        self._make = make
        self._file: tuple[Path, str] | None = None
        self.lacking = "" if make else "there is none for this device"
        """Why it is not used, in one line; empty if it is."""
        self._broke = Counter[str]()

    @property
    def suspect(self) -> bool:
        """Whether the process ended or fell silent when it was asked something the last time."""
        return self._broke.total() > 0

    def broke(self, function: str, why: str) -> None:
        """Note that the process ended or fell silent in a function."""
        self._broke[function] += 1
        if self._broke[function] == MOST_BROKEN:
            self.lacking = why

    def worked(self, function: str) -> None:
        """Note that a function returned."""
        self._broke.pop(function, None)

    def ready(self) -> tuple[Path, str] | None:
        """Return the library and its sha256; None if it is lacking.

        A failure to build it is no reason to do without a run.
        """
        if self._make and self._file is None and not self.lacking:
            try:
                file = self._make()
                self._file = file, sha256_of(file)
            except (Failure, OSError) as failure:
                self.lacking = f"it could not be built: {failure}"
        return None if self.lacking else self._file
