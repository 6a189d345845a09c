"""The server with the faults that stand in the phone's file when each of them could strike.

Of a worker that died it writes what Android's crash handler would: the first lines of it, without a backtrace, in the
words of bionic and debuggerd (AOSP bionic/libc/bionic, debuggerd_handler.cpp; system/core, tombstone).
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from device_runner.failures import RigFailure
from device_runner.rpc_server import handshake
from device_runner.stand_ins.tvm_rpc import server
from device_runner.stand_ins.tvm_rpc.runtime import Behaviour, SessionBehaviour
from device_runner.stand_ins.virtual import faults
from device_runner.stand_ins.virtual.clock import JUMP_FILE
from device_runner.stand_ins.virtual.faults import Faults
from device_runner.stand_ins.virtual.tvm_rpc.inference import ClockedGpu, seconds, simulate, spoil_kernels

FAULTS = "ADRENO_BENCH_PHONE_FAULTS"
"""Environment: the phone's file of faults."""
UNLINKED = 'CANNOT LINK EXECUTABLE "tvm_rpc": cannot locate symbol "TVMFFIErrorCreate" referenced by "tvm_rpc"...'
"""What Android's linker says (bionic, linker_main.cpp)."""
PROBE = ".probe.so"
OTHER_PROTOCOL = b"SSH-2.0-\r\n"

log = logging.getLogger("tvm_rpc")


def main(argv: Sequence[str] | None = None) -> int:
    """Run `tvm_rpc server`; returns an exit code."""
    return server.main(argv, FaultyServer())


class FaultyServer(Behaviour):
    """A server with the phone's faults."""

    _at_start = Faults()

    def why_not_started(self) -> str:
        """Fix which ports the faults take, from now to the end of this server, and return why it cannot start."""
        self._at_start = injected()
        return UNLINKED if self._at_start.broken_runtime == "symbol" else ""

    def is_taken(self, port: int) -> bool:
        """Return whether the faults have taken it."""
        ports = self._at_start.taken_ports
        return bool(ports) and ports[0] <= port <= ports[1]

    def meet(self, connection: socket.socket) -> None:
        """Answer in another protocol, if the faults say so."""
        if injected().broken_runtime == "handshake":
            connection.settimeout(handshake.DEADLINE_S)
            connection.recv(handshake.MAX_KEY_BYTES)
            connection.sendall(OTHER_PROTOCOL)

    def session(self) -> FaultySession:
        """Start a session with the present faults."""
        return FaultySession(injected())


class FaultySession(SessionBehaviour):
    """A session with these faults."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._loaded: list[str] = []
        self.kill_after_s = faults.crash_session_after_s

    def begin(self) -> None:
        """Let samples be simulated or follow the GPU's clock, if the faults say so."""
        if self._faults.simulate_inference_s is not None or self._faults.heat:
            simulate(self._inference_s, ClockedGpu() if self._faults.heat else None)

    def before_loading(self, library: str) -> None:
        """Let the kernels of this library be as the faults say; the probe has none."""
        if library.endswith(PROBE):
            return
        self._loaded.append(library)
        spoil_kernels(self._faults, library)

    def ended(self, worker: int, status: int) -> None:
        """Leave what Android's crash handler would, after the time that it takes."""
        if os.WIFSIGNALED(status):
            time.sleep(self._faults.crash_delay_s)
        note_crash(worker, status)

    def _inference_s(self) -> float | None:
        simulated = self._faults.simulate_inference_s is not None and len(self._loaded) == 1
        return seconds(self._faults, self._loaded[0]) if simulated else None


def injected() -> Faults:
    """Return the phone's faults now; none if their file cannot be read, which the log tells."""
    path = os.environ.get(FAULTS)
    try:
        return faults.read(Path(path)) if path else Faults()
    except RigFailure as failure:
        log.error("%s", failure)
        return Faults()


CRASH_LOG = "data/misc/crash_log"
"""Crash log. Each line begins with its time, in seconds by the phone's clock."""
MOST_BYTES = 65_536
HANDLED = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP)
"""The signals that the handler hears of; of SIGKILL nobody does."""


def note_crash(worker: int, status: int) -> None:
    """Write down how a worker ended, by the status of `waitpid`, if that is what the handler would."""
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in HANDLED:
        return
    died_of = signal.Signals(os.WTERMSIG(status))
    root = Path(os.environ.get("ANDROID_ROOT", "/system")).parent
    now_s = time.time() + _ahead_s(root / JUMP_FILE)
    stamp = time.strftime("%m-%d %H:%M:%S", time.gmtime(now_s)) + f".{int(now_s % 1 * 1000):03}"
    lines = (
        f"F libc    : Fatal signal {died_of.value} ({died_of.name}), code -6 in tid {worker} (tvm_rpc), pid {worker}",
        "F DEBUG   : *** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***",
        f"F DEBUG   : pid: {worker}, tid: {worker}, name: tvm_rpc  >>> tvm_rpc <<<",
        "F DEBUG   : (the virtual phone has no backtrace)",
    )
    log = root / CRASH_LOG
    log.parent.mkdir(exist_ok=True)
    with log.open("a") as file:
        if file.tell() > MOST_BYTES:
            file.truncate(0)
        file.writelines(f"{now_s:.3f} {stamp} {worker:5} {worker:5} {line}\n" for line in lines)


def _ahead_s(jump: Path) -> int:
    try:
        return int(jump.read_text())
    except (OSError, ValueError):
        return 0
