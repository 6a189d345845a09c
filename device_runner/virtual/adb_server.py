"""A private adb server: the real one, that knows this one phone and nothing of the user's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import time
from pathlib import Path
from typing import IO

from device_runner.failures import RigFailure, SetupMissing
from device_runner.virtual.children import Children, dying_with_parent

LOOPBACK = "127.0.0.1"
PROBE_TIMEOUT_S = 2.0
RETRY_S = 0.02
_PROBE = "adreno-bench probe"


def adb_binary() -> Path:
    """The adb that adbutils bundles, else the one in PATH. Raises SetupMissing without either."""
    spec = importlib.util.find_spec("adbutils")  # importing it would cost 0.1 s
    bundled = Path(spec.origin).parent / "binaries" / "adb" if spec and spec.origin else None
    if bundled and os.access(bundled, os.X_OK):
        return bundled
    installed = shutil.which("adb")
    if installed is None:
        raise SetupMissing("there is no adb for this machine in adbutils", hint="install one: apt-get install adb")
    return Path(installed)


def start(children: Children, home: Path, log: IO[bytes]) -> int:
    """Start a server with its keys in `home` and return its port.

    The server is handed a socket that already listens, so it can be reached at once and the port cannot be lost.
    """
    home.mkdir(exist_ok=True)
    env = {"HOME": str(home), "PATH": os.defpath, "ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0"}
    env["ADB_REJECT_KILL_SERVER"] = "1"  # a client of another version would replace it
    with socket.create_server((LOOPBACK, 0), backlog=128) as listener:
        argv = [str(adb_binary()), "-L", f"acceptfd:{listener.fileno()}", "nodaemon", "server"]
        children.start(dying_with_parent(argv), env=env, stderr=log, stdout=log, pass_fds=[listener.fileno()])
        port: int = listener.getsockname()[1]
    return port


def connect(port: int, serial: str, deadline_s: float) -> None:
    """Make the server on `port` connect to `serial` and wait until a command runs there. Raises RigFailure."""
    end = time.monotonic() + deadline_s
    last: object = ""
    while time.monotonic() < end:
        try:
            _ask(port, [f"host:connect:{serial}"], counted=True)
            # What `connect` says is no proof (it says so of a phone that hangs, too); an answer is.
            if _PROBE in _ask(port, [f"host:transport:{serial}", f"shell:echo {_PROBE}"]):
                return
        except (OSError, ValueError) as error:
            last = error
        time.sleep(RETRY_S)
    raise RigFailure(f"the virtual phone did not answer over adb within {deadline_s:g} s", evidence=str(last))


def _ask(port: int, requests: list[str], *, counted: bool = False) -> str:
    """One conversation with the server: each request must be granted; returns what follows the last."""
    with socket.create_connection((LOOPBACK, port), PROBE_TIMEOUT_S) as connection:
        stream = connection.makefile("rwb")
        for request in requests:
            stream.write(b"%04x" % len(request) + request.encode())
            stream.flush()
            if stream.read(4) != b"OKAY":
                raise ValueError(f"adb refused {request}: {stream.read()[4:].decode(errors='replace')}")
        return stream.read(int(stream.read(4), 16) if counted else -1).decode(errors="replace")
