"""This machine as a device, with TVM's libraries from a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from device_runner.device import Identity, Toggles
from device_runner.direct.session import DirectSession, open_session
from device_runner.local import LocalDevice, LocalTransport


class DirectDevice(LocalDevice):
    """Its sessions are processes that load `libraries`, tvm-ffi's first; `root` is where it may write."""

    def __init__(self, name: str, root: Path, libraries: Sequence[Path], probe: Path | None, runtime: str = "") -> None:
        """`runtime` is the hash of the libraries, if they were brought for a machine of this kind."""
        super().__init__(name, LocalTransport(str(root)), (), partial(Path, probe) if probe else None)
        self.libraries = tuple(libraries)
        self.runtime = runtime

    def _opened(self, toggles: Toggles, timeout_s: float) -> AbstractContextManager[DirectSession]:
        return open_session(self.libraries, toggles, timeout_s=timeout_s, probe=self.probe)

    def _identity(self, opencl: Mapping[str, Any]) -> Identity:
        return replace(super()._identity(opencl), runtime=self.runtime)
