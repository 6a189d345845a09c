"""A local port that leads to one stream, and can be cut.

TVM's RPC client connects to a port, blocks in C++ for as long as the server does, and frees remote objects while it
holds Python's interpreter lock (tvm-ffi 0.1.14, object.pxi): neither the pump nor the clock can live in this process.
The relay is a small process of its own. It cuts the stream when a deadline passes, and the blocked call returns with
an error. So it does at a signal that asks us to end: TVM looks for one only when a system call of its own is
interrupted, and one that comes before that call, or to another thread, would wait for the device. It passes on nothing
that no server of TVM's would send (`rpc_replies`). It leaves no forwarding rule in the adb server, and ends with us.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from device_runner.session import relay_process

END_TIMEOUT_S = 5.0
MAIN = f"""import sys
sys.path.append({str(Path(relay_process.__file__).parents[2])!r})
import {relay_process.__name__} as relay
relay.{relay_process.main.__name__}()"""
"""Main of the relay, which starts without the installed packages."""


class Relay(AbstractContextManager["Relay"]):
    """Leads the first client of `port` to a stream, which it takes over. Use as a context manager."""

    def __init__(self, stream: socket.socket) -> None:
        self._ended_because: bytes | None = None
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._signals, their_signals = socket.socketpair()
        self._signals.setblocking(False)
        with stream, theirs, their_signals, socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
            fds = [end.fileno() for end in (listener, stream, theirs, their_signals)]
            command = [sys.executable, "-I", "-S", "-c", MAIN, *map(str, fds)]
            # Its own process group: Ctrl-C at the terminal must not break the stream before we have let go of it.
            self._process = subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL, start_new_session=True)

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def expired(self) -> bool:
        """Whether a deadline cut the stream."""
        return self._reason() == relay_process.EXPIRED

    @property
    def open(self) -> bool:
        """Whether the stream still carries bytes."""
        return self._reason() is None

    @property
    def nonsense(self) -> str:
        """What the device sent that no RPC server of TVM's sends, if the stream was cut for that; else empty."""
        reason = self._reason() or b""
        cut = reason.startswith(relay_process.NONSENSE)
        return reason.removeprefix(relay_process.NONSENSE).decode(errors="replace") if cut else ""

    @property
    def died(self) -> bool:
        """Whether the relay itself ended, and the stream only with it."""
        return self._reason() == b""

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Cut the stream if the body takes longer, or is asked to end."""
        self._send(str(seconds))
        try:
            with _signals_told_to(self._signals):
                yield
        finally:
            self._send("inf")

    def cut(self) -> None:
        """Cut the stream now."""
        self._send("0")

    def close(self) -> None:
        """Cut the stream and end the process."""
        self._control.close()
        self._signals.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel, where nothing of ours reaches it
                self._process.wait(END_TIMEOUT_S)

    def _send(self, message: str) -> None:
        with suppress(OSError):  # closed or dead: then the stream is cut already
            self._control.send(message.encode())

    def _reason(self) -> bytes | None:
        if self._ended_because is None:
            try:
                self._ended_because = self._control.recv(relay_process.REASON_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError:  # killed with messages of ours unread, or closed here
                self._ended_because = b""
        return self._ended_because


@contextmanager
def _signals_told_to(channel: socket.socket) -> Iterator[None]:
    """Have the number of each signal that Python has a handler for sent at once, whatever the main thread is at.

    A call of another thread goes on: Python runs handlers in the main thread, and only that may ask for this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(channel.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
