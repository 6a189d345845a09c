"""This host as a device: TVM's RPC server as a child process, on the host's own OpenCL."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from device_runner.device import Device, Identity, Pulse, PushResult, ShellResult, Steadiness, T, ThermalLimits
from device_runner.failures import RigFailure
from device_runner.installed_tvm import EXTRA_LIBRARIES
from device_runner.rpc_device import RpcDevice, chip_and_board
from device_runner.rpc_server.server import NOT_FOUND
from device_runner.runtimes import host, opencl, probe
from device_runner.stand_ins.host_gpu import ReadingSource, pulses, source, steadily
from device_runner.transport.base import RemoteProcess
from device_runner.transport.quoting import quoted

CHUNK_BYTES = 65_536

RPC_SERVER = (
    sys.executable,
    "-c",
    "import sys; from device_runner.stand_ins.tvm_rpc.server import main; sys.exit(main())",
)


@contextmanager
def open_local(name: str, cache: Path, _progress: object, step: Callable[[str], None]) -> Iterator[Device]:
    """Open this host; nothing has to be started or undone. Raises SetupMissing, RigFailure."""
    step(host.STEP)
    libraries = {EXTRA_LIBRARIES: ":".join(str(library) for library in host.libraries(cache) if library)}
    transport = LocalTransport(str(cache / "local"), {**libraries, **opencl.chosen()})
    yield LocalDevice(name, transport, RPC_SERVER, partial(probe.library, cache))


@dataclass(frozen=True)
class LocalTransport:
    """Runs commands here, with `environment` added to ours."""

    root: str
    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = "local"

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        """Run a command to its end. One that is not here ends as in a shell, with 127."""
        try:
            process = self._popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except FileNotFoundError:
            return ShellResult(NOT_FOUND, "", f"{command[0]}: not found")
        with process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except BaseException as error:
                _kill(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    message = f"this host did not end `{quoted(*command)}` within {timeout_s:g} s"
                    raise RigFailure(message) from None
                raise
        return ShellResult(_code(process), stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    @property
    def hides_environment(self) -> bool:
        """Yes: only our user can read it (proc(5), /proc/PID/environ)."""
        return True

    def spawn(self, command: Sequence[str], *, environment: Mapping[str, str], timeout_s: float) -> RemoteProcess:
        """Start a command that runs until it is hung up on; its standard input closes when we die."""
        process = self._popen(command, stdin=subprocess.PIPE, stderr=subprocess.STDOUT, environment=environment)

        def hang_up() -> None:
            assert process.stdin
            with suppress(OSError):
                process.stdin.close()

        return RemoteProcess(_events(process), hang_up=hang_up, abandon=hang_up)

    def dial(self, port: int, *, timeout_s: float) -> socket.socket:
        """Return a connection to a local port. Raises ConnectionRefusedError if nothing listens there."""
        sock = socket.create_connection(("127.0.0.1", port), timeout=max(timeout_s, 0.001))
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        """There is nothing to push: the file is here."""
        return PushResult(str(file.resolve()), 0)

    def _popen(
        self, command: Sequence[str], *, stdin: int, stderr: int, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **self.environment, **(environment or {})},
            start_new_session=True,
        )


class LocalDevice(RpcDevice):
    """This host's own OpenCL device."""

    @cached_property
    def _gpu(self) -> ReadingSource | str:
        """What reads its clock and heat, or why nothing does."""
        return source(self.opencl.name)

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """Do `work`, and say whether the GPU kept its pace, as far as its driver tells; nothing is set."""
        return steadily(work, self._gpu)

    def pulses(self, limits: ThermalLimits) -> Callable[[], Pulse]:
        """Return what looks at the GPU's clock and heat."""
        return pulses(self._gpu)

    def _identity(self, opencl: Mapping[str, Any]) -> Identity:
        return Identity(
            kind="local",
            serial=platform.node(),
            soc=platform.processor() or platform.machine(),
            rom=platform.platform(),
            abi=platform.machine(),
            **chip_and_board(self.transport),
            **opencl,
        )


def _events(process: subprocess.Popen[bytes]) -> Iterator[bytes | int]:
    assert process.stdout
    with process.stdout as stdout:
        while piece := os.read(stdout.fileno(), CHUNK_BYTES):
            yield piece
    process.wait()
    yield _code(process)


def _code(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code as a shell tells it: 128 + signal after a death by signal."""
    code = process.returncode
    return 128 - code if code < 0 else code


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
