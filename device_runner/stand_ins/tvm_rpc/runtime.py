"""TVM's runtime in this process, what the server must add to it, and where a faulty device would differ."""

from __future__ import annotations

import ctypes
import logging
import os
import socket
import sys
from pathlib import Path

from device_runner import installed_tvm
from device_runner.installed_tvm import EXTRA_LIBRARIES

_OPTIONAL = ("ml_dtypes", "numpy", "torch")
"""What tvm_ffi imports where it is installed. A server has no use for it, and it is more than half of its start."""

log = logging.getLogger("tvm_rpc")


class SessionBehaviour:
    """What happens in one session beside what its client asks for."""

    kill_after_s: float | None = None
    """How long after its beginning the session's worker is killed; None if it is not."""

    def begin(self) -> None:
        """Prepare the worker, before it serves."""

    def before_loading(self, library: str) -> None:
        """Act in the worker, before it loads the library of this file name."""

    def ended(self, worker: int, status: int) -> None:
        """Act in the server, when its worker has ended with this status of `waitpid`, before its log says so."""


class Behaviour:
    """What happens in a server beside its sessions."""

    def why_not_started(self) -> str:
        """Return what the device's linker says of a program that it cannot start; empty of one that it can."""
        return ""

    def is_taken(self, port: int) -> bool:
        """Return whether a port is to be found taken that is not."""
        return False

    def meet(self, connection: socket.socket) -> None:
        """Act before the handshake with a client."""

    def session(self) -> SessionBehaviour:
        """Return the session for a client that was let in."""
        return SessionBehaviour()


def load() -> None:
    """Load `tvm_ffi`, `libtvm_runtime` and what the environment names. Raises OSError, ImportError or SetupMissing.

    Nothing here calls OpenCL, which does not survive the fork that begins a session.
    """
    for package in _OPTIONAL:
        sys.modules.setdefault(package, None)  # type: ignore[arg-type]
    import tvm_ffi  # noqa: F401

    for library in _libraries():
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def _libraries() -> list[Path]:
    own = installed_tvm.libraries("tvm", *installed_tvm.RUNTIME)
    return own + [Path(text) for text in os.environ.get(EXTRA_LIBRARIES, "").split(":") if text]


def serve(fd: int, folder: Path, session: SessionBehaviour) -> None:
    """Serve one client on a connected socket until it leaves; its uploads go to `folder`."""
    import tvm_ffi

    session.begin()

    def workpath(name: str) -> str:
        return name if name.startswith("/") else str(folder / name)

    def load_module(name: str) -> object:
        path = workpath(name)
        if not path.endswith(".so"):
            raise ValueError(f"{name}: only shared libraries can be loaded, there is no compiler on the device")
        log.info("Load module from %s ...", path)
        session.before_loading(Path(path).name)
        return tvm_ffi.load_module(path)

    tvm_ffi.register_global_func("tvm.rpc.server.workpath", workpath, override=True)
    tvm_ffi.register_global_func("tvm.rpc.server.load_module", load_module, override=True)
    tvm_ffi.get_global_func("rpc.ServerLoop")(fd)
