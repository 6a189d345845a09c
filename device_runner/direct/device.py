"""This machine as a device, with TVM's libraries from a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

from device_runner.device import Toggles
from device_runner.direct.session import open_session
from device_runner.local import LocalDevice, LocalTransport
from device_runner.session.rpc_session import RpcSession


class DirectDevice(LocalDevice):
    """Its sessions are processes that load `libraries`, tvm-ffi's first; `root` is where it may write."""

    def __init__(self, name: str, root: Path, libraries: Sequence[Path], probe: Path | None) -> None:
        super().__init__(name, LocalTransport(str(root)), (), partial(Path, probe) if probe else None)
        self.libraries = tuple(libraries)

    @contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[RpcSession]:
        """A fresh process with these toggles."""
        with open_session(self.libraries, toggles, timeout_s=timeout_s, probe=self.probe) as session:
            yield cast(RpcSession, session)  # both are what `device.Session` asks for, and have the probe
