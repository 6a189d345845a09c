"""This machine as a device, with TVM's libraries from a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from shutil import which
from typing import Any

from device_runner.device import Identity, Toggles
from device_runner.direct.session import DirectSession, open_session
from device_runner.local import LocalDevice, LocalTransport
from device_runner.runtimes.phone.opencl_link import linked_opencl


class DirectDevice(LocalDevice):
    """Its sessions are processes that load `libraries`, in that order; `root` is where it may write."""

    def __init__(self, name: str, root: Path, libraries: Sequence[Path], probe: Path | None, runtime: str = "") -> None:
        """`runtime` is the hash of the libraries, if they were brought for a machine of this kind."""
        super().__init__(name, LocalTransport(str(root)), (), partial(Path, probe) if probe else None)
        self.libraries = tuple(libraries)
        self.runtime = runtime

    @cached_property
    def _searched(self) -> str:
        """A folder that the loader has to search for OpenCL, too: a runtime of TVM's own knows it by another name."""
        return linked_opencl(self.transport) if self.runtime and which("sh") else ""

    def _opened(self, toggles: Toggles, timeout_s: float) -> AbstractContextManager[DirectSession]:
        return open_session(self.libraries, toggles, timeout_s=timeout_s, probe=self.probe, searched=self._searched)

    def _identity(self, opencl: Mapping[str, Any]) -> Identity:
        return replace(super()._identity(opencl), runtime=self.runtime)
