"""A private adb server: the real one, that knows this one phone and nothing of the user's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from pathlib import Path
from typing import IO

from device_runner.deadline import Deadline
from device_runner.failures import Failure, RigFailure, SetupMissing
from device_runner.lifetime import dying_with_parent
from device_runner.private_sockets import short_path
from device_runner.stand_ins.virtual.processes import KILL_DEADLINE_S, Children
from device_runner.transport.adb import Adb

LOOPBACK = "127.0.0.1"
SOCKET = "server"
PROBE_TIMEOUT_S = 2.0
RETRY_S = 0.02


def adb_binary() -> Path:
    """Return the adb that adbutils bundles, else the one in PATH. Raises SetupMissing without either."""
    spec = importlib.util.find_spec("adbutils")  # importing it would cost 0.1 s
    bundled = Path(spec.origin).parent / "binaries" / "adb" if spec and spec.origin else None
    if bundled and os.access(bundled, os.X_OK):
        return bundled
    installed = shutil.which("adb")
    if installed is None:
        raise SetupMissing("there is no adb for this machine in adbutils", hint="install one: apt-get install adb")
    return Path(installed)


class PrivateServer:
    """A server that ends with `children`, with its keys in `home`. It can be reached at once.

    Google's adb asks nobody who they are, so it listens on a Unix socket in `home`, which only our user can enter.
    With `tcp` it listens on a port of 127.0.0.1 instead, for clients that know nothing else.
    """

    def __init__(self, children: Children, home: Path, log: IO[bytes], *, tcp: bool = False) -> None:
        home.mkdir(exist_ok=True)
        self._children, self._home, self._log = children, home, log
        self.address: int | Path = 0 if tcp else home / SOCKET
        self._start()

    def restart(self) -> None:
        """End it, if it still lives, and start it again where it was. It knows no phone then."""
        self._children.end(self._process)
        self._start()

    def kill(self) -> None:
        """Kill it, as somebody else's `adb kill-server` would."""
        self._process.kill()
        self._process.wait(KILL_DEADLINE_S)

    def _start(self) -> None:
        """Start the server with a socket that already listens, so that a port cannot be lost."""
        env = {"HOME": str(self._home), "PATH": os.defpath, "ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0"}
        env["ADB_REJECT_KILL_SERVER"] = "1"  # a client of another version would replace it
        with self._listen() as listener:
            fd = listener.fileno()
            argv = dying_with_parent([str(adb_binary()), "-L", f"acceptfd:{fd}", "nodaemon", "server"])
            self._process = self._children.start(argv, env=env, stderr=self._log, stdout=self._log, pass_fds=[fd])

    def _listen(self) -> socket.socket:
        if isinstance(self.address, Path):
            return listen_private(self.address)
        listener = socket.create_server((LOOPBACK, self.address), backlog=128)
        self.address = listener.getsockname()[1]
        return listener


PRIVATE = 0o700
"""Mode of a folder that no other user of the host can enter."""


def listen_private(file: Path) -> socket.socket:
    """Listen on a socket that no other user of the host can reach. One that is there already is replaced."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.parent.chmod(PRIVATE)
    file.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        with short_path(file) as name:
            listener.bind(name)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def connect(server: int | Path, serial: str, deadline_s: float) -> None:
    """Make the server connect to `serial` and wait until a command runs there. Raises RigFailure."""
    adb, failed = Adb(serial, server), ""
    for _ in Deadline(deadline_s).attempts(RETRY_S):
        try:
            adb.find(timeout_s=PROBE_TIMEOUT_S)
            # The server's answer is no proof: it says "connected" of a phone that hangs, too. A command's end is.
            adb.shell(["true"], timeout_s=PROBE_TIMEOUT_S)
            return
        except (OSError, Failure) as error:
            failed = str(error)
    raise RigFailure(f"the virtual phone did not answer over adb within {deadline_s:g} s", evidence=failed)
