"""One device behind an adb server: shell, long-running processes, streams. Every call has a total deadline.

adbutils serves for what concerns the server (`adb_server`), not for what concerns a device: its timeouts are for each
receive, and opening a stream has none that can be set. The host side of the protocol is a request of four hex digits
and a text, answered by OKAY or FAIL (AOSP packages/modules/adb, OVERVIEW.TXT and SERVICES.TXT).
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from device_runner.deadline import Deadline, receive
from device_runner.device import ShellResult
from device_runner.failures import DeviceLost, LinkFailure
from device_runner.private_sockets import connect
from device_runner.transport.base import RemoteProcess
from device_runner.transport.quoting import quoted

_STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = 1, 2, 3, 4
"""Packet ids of shell protocol v2 (AOSP shell_protocol.h)."""

PACKET_LIMIT_BYTES = 16 << 20
"""Limit of one packet; adbd never sends more."""

OUTPUT_LIMIT_BYTES = 16 << 20
"""Limit of a command's output. None of ours prints more; an endless one would fill this host's memory."""

TITLE_LIMIT = 160

_CLOSED = "closed"
"""Why the server says FAIL when the device closes a stream before it opens: an unknown service, or adbd ends."""

SERVER_ANSWERS_S = 1.0
RESTART = "restart the device, or plug it in again"

_HINTS = {
    "unauthorized": "unlock its screen and allow USB debugging for this computer",
    "offline": "plug it in again, or try `adb reconnect offline`",
    "not found": "`adb devices` lists what the server sees; is the cable in, and USB debugging on?",
}


class AdbRefusal(Exception):
    """The adb server answered FAIL; the text is its reason."""


@dataclass(frozen=True)
class Adb:
    """A device, by serial, behind an adb server of this host."""

    serial: str
    server: int | Path
    """Where the server listens: a port of 127.0.0.1, or a Unix socket."""

    def open(self, service: str, deadline: Deadline) -> socket.socket:
        """Return a stream to a service of the device (`sync:`, `tcp:9090`).

        Raises `AdbRefusal` if the device declines it.
        """
        sock = self._connect(deadline)
        try:
            self._choose_device(sock, deadline)
            self._request(sock, service, deadline)
        except BaseException:
            sock.close()
            raise
        return sock

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        """Run a command to its end. On expiry its stream is closed, so adbd sends it SIGHUP; `DeviceLost` is raised."""
        deadline = Deadline(timeout_s)
        stdout, stderr = bytearray(), bytearray()
        with self.blame(_title(command), deadline), self._open_shell(command, deadline) as sock:
            for kind, data in _packets(sock, deadline):
                if kind == _STDOUT:
                    stdout += data
                elif kind == _STDERR:
                    stderr += data
                elif kind == _EXIT:
                    return ShellResult(data[0], stdout.decode(errors="replace"), stderr.decode(errors="replace"))
                if len(stdout) + len(stderr) > OUTPUT_LIMIT_BYTES:
                    message = f"device {self.serial} prints more than {OUTPUT_LIMIT_BYTES >> 20} MiB"
                    raise DeviceLost(f"{message}: {_title(command)}", hint=RESTART)
        raise AssertionError("the packets end with an exit code or an error")

    @property
    def hides_environment(self) -> bool:
        """No: variables stand on the command line, which the apps of a phone cannot read."""
        return False

    def spawn(self, command: Sequence[str], *, environment: Mapping[str, str], timeout_s: float) -> RemoteProcess:
        """Start a command that goes on. When the stream closes, also by our death, adbd sends it SIGHUP."""
        deadline = Deadline(timeout_s)
        variables = [f"{name}={value}" for name, value in environment.items()]
        with self.blame(_title(command), deadline):
            sock = self._open_shell(["env", *variables, *command], deadline)
        sock.settimeout(None)

        def hang_up() -> None:
            with suppress(OSError):
                sock.sendall(struct.pack("<BI", _CLOSE_STDIN, 0))

        def abandon() -> None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

        return RemoteProcess(_events(sock), hang_up=hang_up, abandon=abandon)

    def dial(self, port: int, *, timeout_s: float) -> socket.socket:
        """Return a stream to a TCP port of the device. Raises ConnectionRefusedError if nothing listens there."""
        deadline = Deadline(timeout_s)
        with self.blame(f"a connection to its port {port}", deadline):
            try:
                sock = self.open(f"tcp:{port}", deadline)
            except AdbRefusal:
                sock = None
        if sock is None:
            raise ConnectionRefusedError(f"nothing listens on port {port} of {self.serial}")
        sock.settimeout(None)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def ask_server(self, request: str, *, timeout_s: float) -> str:
        """Return what the server answers to a request of its own (`host:…`). Raises `DeviceLost` if it refuses."""
        deadline = Deadline(timeout_s)
        with self.blame(request, deadline), self._connect(deadline) as sock:
            self._request(sock, request, deadline)
            return _text(sock, deadline)

    def drop(self, *, timeout_s: float) -> None:
        """Have the server end its connection to the device. What it answers proves nothing."""
        verb = f"host:disconnect:{self.serial}" if self.by_tcp else f"host-serial:{self.serial}:reconnect"
        self.ask_server(verb, timeout_s=timeout_s)

    def find(self, *, timeout_s: float) -> None:
        """Have the server look for a device that is reached by TCP; a USB device it finds by itself.

        What it answers proves nothing, so nothing is made of it. Raises `LinkFailure` without a server.
        """
        if self.by_tcp:
            with suppress(DeviceLost):
                self.ask_server(f"host:connect:{self.serial}", timeout_s=timeout_s)

    @property
    def by_tcp(self) -> bool:
        """Whether the serial is an address, `HOST:PORT`."""
        host, colon, port = self.serial.rpartition(":")
        return bool(colon and host and port.isdigit())

    def reboot(self, *, timeout_s: float) -> None:
        """Ask the device to reboot. At some moment after, it drops all connections."""
        deadline = Deadline(timeout_s)
        with self.blame("reboot", deadline):
            self.open("reboot:", deadline).close()

    @contextmanager
    def blame(self, action: str, deadline: Deadline) -> Iterator[None]:
        """Turn every way in which the conversation can fail into one failure that names the device and the action."""
        try:
            yield
        except TimeoutError:
            message = f"device {self.serial} did not answer within {deadline.seconds:g} s: {action}"
            raise DeviceLost(message, hint=RESTART) from None
        except AdbRefusal as refused:
            if str(refused) == _CLOSED:
                message = f"the connection to device {self.serial} broke: the device closed it: {action}"
                raise DeviceLost(message, hint=RESTART) from refused
            raise DeviceLost(f"device {self.serial} refused: {refused}: {action}") from refused
        except OSError as error:
            with suppress(TimeoutError):
                self._connect(Deadline(SERVER_ANSWERS_S)).close()  # raises `LinkFailure` if the server is gone
            message = f"the connection to device {self.serial} broke: {error}: {action}"
            raise DeviceLost(message, hint=RESTART) from error

    def _open_shell(self, command: Sequence[str], deadline: Deadline) -> socket.socket:
        return self.open(f"shell,v2,raw:{quoted(*command)}", deadline)

    def _connect(self, deadline: Deadline) -> socket.socket:
        try:
            timeout_s = max(deadline.remaining_s, 0.001)
            if isinstance(self.server, Path):
                return connect(self.server, timeout_s)
            return socket.create_connection(("127.0.0.1", self.server), timeout=timeout_s)
        except ConnectionRefusedError:
            ours = isinstance(self.server, Path)  # the virtual device's, which each run starts
            message = f"no adb server answers on {'' if ours else 'port '}{self.server}"
            raise LinkFailure(message, hint="run it again" if ours else "start it with `adb start-server`") from None

    def _choose_device(self, sock: socket.socket, deadline: Deadline) -> None:
        try:
            self._request(sock, f"host:transport:{self.serial}", deadline)
        except AdbRefusal as refused:
            reason = str(refused)
            hint = next((hint for word, hint in _HINTS.items() if word in reason), "")
            raise DeviceLost(f"device {self.serial} cannot be reached: {reason}", hint=hint) from refused

    @staticmethod
    def _request(sock: socket.socket, text: str, deadline: Deadline) -> None:
        payload = text.encode()
        if b"\0" in payload:
            raise ValueError("adb cannot carry a NUL in a command")
        deadline.bound(sock)
        sock.sendall(b"%04x%b" % (len(payload), payload))
        status = receive(sock, 4, deadline)
        if status == b"FAIL":
            raise AdbRefusal(_text(sock, deadline))
        if status != b"OKAY":
            raise OSError(f"the adb server answered {status!r}")


def _text(sock: socket.socket, deadline: Deadline) -> str:
    """Return a text of the server's, which its length precedes in hex digits."""
    size = receive(sock, 4, deadline)
    if not re.fullmatch(rb"[0-9a-fA-F]{4}", size):
        raise OSError(f"the adb server answered {size!r}")
    return receive(sock, int(size, 16), deadline).decode(errors="replace")


def _title(command: Sequence[str]) -> str:
    """Return what messages call a command; `sh -c SCRIPT NAME ARGUMENTS` goes by its name."""
    is_script = len(command) > 3 and list(command[:2]) == ["sh", "-c"]
    return quoted(*(command[3:] if is_script else command))[:TITLE_LIMIT]


def _packets(sock: socket.socket, deadline: Deadline | None) -> Iterator[tuple[int, bytes]]:
    while True:
        kind, size = struct.unpack("<BI", receive(sock, 5, deadline))
        if size > PACKET_LIMIT_BYTES or (kind == _EXIT and size != 1):
            raise OSError(f"the device sent a packet of {size} bytes and kind {kind}")
        yield kind, receive(sock, size, deadline)


def _events(sock: socket.socket) -> Iterator[bytes | int]:
    with sock:
        for kind, data in _packets(sock, None):
            if kind == _EXIT:
                yield data[0]
                return
            yield data
