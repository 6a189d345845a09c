"""This machine as a device, with TVM's libraries from a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from device_runner.device import Toggles
from device_runner.direct.session import DirectSession, open_session
from device_runner.local import LocalDevice, LocalTransport


class DirectDevice(LocalDevice):
    """Its sessions are processes that load `libraries`, tvm-ffi's first; `root` is where it may write."""

    def __init__(self, name: str, root: Path, libraries: Sequence[Path], probe: Path | None) -> None:
        super().__init__(name, LocalTransport(str(root)), (), partial(Path, probe) if probe else None)
        self.libraries = tuple(libraries)

    @contextmanager
    def session(  # type: ignore[override]  # what every device has asks no more of it than `ProbedSession`
        self, toggles: Toggles, *, timeout_s: float
    ) -> Iterator[DirectSession]:
        """A fresh process with these toggles."""
        with open_session(self.libraries, toggles, timeout_s=timeout_s, probe=self.probe) as session:
            yield session
