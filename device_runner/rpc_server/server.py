"""One TVM RPC server process on a machine: started with its own environment, ended for certain.

The server lives exactly as long as the stream that started it. A small shell script on the machine runs it in a process
group of its own, and ends that group when its standard input closes: because the session ended, because this process
was killed, or because the cable was pulled. Its log arrives on the same stream, so it survives a device that does not.
"""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from device_runner.deadline import Deadline
from device_runner.failures import DeviceLost, LinkFailure, RigFailure, SetupMissing
from device_runner.rpc_server import KEY_VARIABLE
from device_runner.transport.base import BOOT_ID, RemoteProcess, Transport

SERVER_SCRIPT = """
trap '' HUP
mkdir -p "$1" && cd "$1" || exit 125
echo "boot $(cat "$2" 2>/dev/null)"
shift 2
exec 3<&0 5>&1
setsid sh -c 'trap : TERM; echo $$ >&4; "$@" 4>&-; echo $? >&4' leader "$@" </dev/null 4>&1 >&5 2>&1 3<&- 5>&- | {
  read -r leader || exit 127
  {
    while read -r _; do :; done <&3
    kill -s TERM -- "-$leader"
    i=0
    while kill -s 0 -- "-$leader" && [ $i -lt 20 ]; do sleep 0.05; i=$((i + 1)); done
    kill -s KILL -- "-$leader"
  } >/dev/null 2>&1 5>&- &
  keeper=$!
  exec 3<&-
  read -r code || code=137
  kill -s KILL $keeper
  wait $keeper 2>/dev/null
  i=0
  while kill -s KILL -- "-$leader" 2>/dev/null && [ $i -lt 20 ]; do sleep 0.05; i=$((i + 1)); done
  exit $code
} 2>/dev/null
"""
"""Uses only what dash, mksh and toybox understand. Arguments: a folder to run in, a file that names the
machine's boot, then the server's command.

A shell leads the server's process group, and tells who it is and how the server ended through the pipe, since what
`setsid` itself says means nothing: Android 11's always forks, and its parent ends with 0 at once. It outlives SIGTERM:
a server whose parent ended before it would stay in the group until the machine's init reaps it. The exit code tells
the host that the group is gone: a signal can no longer be sent to it. The keeper reads by itself, without `cat`: adbd
has one socket for standard input and output and sends the exit code after the end of file, which a child that is left
behind would hold back. SIGHUP, which adbd sends when a stream breaks, ends nobody: without its shells the server could
be left before there is a keeper, and mksh waits a second before it goes.
What the shell that ends the group complains of goes nowhere: on a broken stream it would die of SIGPIPE first.
"""

PORTS = range(20_000, 32_000)
"""Ports below Linux's ephemeral ones, above the well-known ones and the adb server's emulator scan."""

PORT_ATTEMPTS = 5
POLL_S = 0.03
LAST_DIAL_S = 1.0
"""A dial at the end of the deadline still gets so long, to tell a slow server from a machine that is gone."""
END_TIMEOUT_S = 5.0
NOT_FOUND = 127
"""The exit code of a shell whose command does not exist."""
KILLED = (128 + 9, 128 + 15)
"""The exit codes of a process that somebody ended (for want of memory, say): the runtime itself is not at fault."""


@dataclass(frozen=True)
class Server:
    """A running RPC server. Only a client that names `key` is served."""

    machine: str
    process: RemoteProcess
    port: int
    key: str

    @property
    def boot(self) -> str:
        """The boot of the machine in which it was started; empty if that is not known any more."""
        match = re.match(r"boot (\S+)$", self.process.output(), re.MULTILINE)
        return match[1] if match else ""

    @property
    def missed_its_port(self) -> bool:
        """Whether somebody else took the port meanwhile: the server says so, and listens where nobody finds it."""
        return re.search(r"Bind to \S*:-1\b", self.process.output()) is not None

    def stop(self) -> None:
        """End the server and all its children. Raises `DeviceLost` if the machine does not confirm that."""
        if not self.process.end(END_TIMEOUT_S):
            message = f"device {self.machine} did not confirm within {END_TIMEOUT_S:g} s that its RPC server ended"
            raise DeviceLost(message, evidence=self.process.output())


def start_server(
    transport: Transport, program: Sequence[str], environment: Mapping[str, str], deadline: Deadline
) -> tuple[Server, socket.socket]:
    """Start `program server …` and wait until it listens; returns it with a first stream to it.

    Raises `SetupMissing` if there is no such program, `RigFailure` if it ends at once or does not listen in time.
    """
    for name in environment:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} is not the name of an environment variable")
    for _ in range(PORT_ATTEMPTS):
        port = _free_port(transport, deadline)
        server = _spawn(transport, program, environment, port, deadline)
        try:
            stream = _stream_to(server, transport, deadline)
        except BaseException:
            server.process.end(END_TIMEOUT_S)
            raise
        if stream:
            return server, stream
        server.process.end(END_TIMEOUT_S)
        if not server.missed_its_port:
            raise _died(server, program)
    raise RigFailure(f"no free port for the RPC server on {transport.name}", evidence=server.process.output())


def _spawn(
    transport: Transport, program: Sequence[str], environment: Mapping[str, str], port: int, deadline: Deadline
) -> Server:
    key = secrets.token_hex(8)
    flags = ["server", "--host=127.0.0.1", f"--port={port}", f"--port-end={port + 1}"]
    flags.append(f"--work-dir={transport.root}")  # its default lies in the user's home, and it is removed afterwards
    if transport.hides_environment:
        environment = {**environment, KEY_VARIABLE: key}
    else:  # all that TVM's own server reads
        flags.append(f"--key={key}")
    command = ["sh", "-c", SERVER_SCRIPT, "serve", transport.root, BOOT_ID, *program, *flags]
    process = transport.spawn(command, environment=environment, timeout_s=deadline.remaining_s)
    return Server(transport.name, process, port, key)


def _free_port(transport: Transport, deadline: Deadline) -> int:
    for _ in deadline.attempts(0):
        port = secrets.choice(PORTS)
        try:
            transport.dial(port, timeout_s=deadline.remaining_s).close()
        except ConnectionRefusedError:
            return port
    raise RigFailure(f"every port that was tried on {transport.name} is taken")


def _stream_to(server: Server, transport: Transport, deadline: Deadline) -> socket.socket | None:
    """Return a stream to the server as soon as it listens, None if it ended before or missed its port."""
    for _ in deadline.attempts(POLL_S):
        if server.process.ended or server.missed_its_port:
            return None
        try:
            return transport.dial(server.port, timeout_s=max(deadline.remaining_s, LAST_DIAL_S))
        except ConnectionRefusedError:
            continue
    message = f"the RPC server on {transport.name} did not listen within {deadline.seconds:g} s"
    raise RigFailure(message, evidence=server.process.output())


def _died(server: Server, program: Sequence[str]) -> RigFailure | DeviceLost:
    log, code = server.process.output(), server.process.code
    if code is None:
        return DeviceLost(f"the connection to {server.machine} broke while its RPC server started", evidence=log)
    if code == NOT_FOUND:
        return SetupMissing(f"{server.machine} has no TVM RPC server: {program[-1]} cannot be run", evidence=log)
    kind = LinkFailure if code in KILLED else RigFailure
    return kind(f"the RPC server on {server.machine} ended at once with code {code}", evidence=log)
