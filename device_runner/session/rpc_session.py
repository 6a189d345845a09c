"""A session over TVM's RPC: one server process, one connection, and the programs loaded through it.

Whatever goes wrong in a call is traced to its owner. The connection was cut by our deadline: the path hangs, or the
device is gone if it does not answer a probe. It broke by itself: the process on the device died, or the device is
gone. It still stands: TVM reports an error of the program.
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from device_runner.deadline import Deadline
from device_runner.device import Array, Launch, Loadable, PeakMemory, PushResult, Toggles
from device_runner.failures import (
    DeviceCrash,
    DeviceFailure,
    DeviceLost,
    Failure,
    Hang,
    LinkFailure,
    PathFailure,
    RigFailure,
    SetupMissing,
)
from device_runner.interrupt import raise_if_interrupted
from device_runner.rpc_server.server import END_TIMEOUT_S, KILLED, Server, start_server
from device_runner.runtimes.probe import DeviceProbe
from device_runner.session.diagnosis import failure_of, how_ended, own_assertion
from device_runner.session.probing import SessionProbe
from device_runner.session.relay import Relay
from device_runner.session.rpc_replies import TEXT_LIMIT_BYTES
from device_runner.store import sha256_of
from device_runner.transport.base import Transport, boot_of

SESSION_LIMIT_S = 6 * 3600
"""TVM's server ends the session after this time; only a fence, every call has its own deadline."""

_WORKER_ENDED = r"Child pid=\d+ .*status = ?(\d+)"
"""What TVM's server says of a worker, with the status of `waitpid` (apps/cpp_rpc/rpc_server.cc: three wordings)."""

OUTPUT_LIMIT_BYTES = 256 << 20
"""Limit of a network's outputs together."""

PROBE_TIMEOUT_S = 0.9
"""A device that answers no shell for so long after a deadline is lost: the whole verdict falls within a second."""
SLOW_PROBE_TIMEOUT_S = 5.0
"""What tells of a crash may arrive so late: Android's handler writes its tombstone first."""

OTHER_SERVER = "is it of another release of TVM? `adreno-bench doctor --device NAME` shows that"


@contextmanager
def open_session(
    transport: Transport,
    program: Sequence[str],
    toggles: Toggles,
    *,
    timeout_s: float,
    probe: DeviceProbe | None = None,
) -> Iterator[RpcSession]:
    """Start an RPC server with `toggles` and connect to it; end it when the context ends. Times are in seconds."""
    deadline = Deadline(timeout_s)
    _import_tvm()  # takes seconds on a busy host; a server shows out who is silent for 10 s
    server, stream = start_server(transport, program, toggles, deadline)
    try:
        with Relay(stream) as relay:
            yield RpcSession(transport, server, relay, toggles, timeout_s=deadline.remaining_s, probe=probe)
    except DeviceFailure:
        server.process.end(0)  # nobody is there to confirm anything
        raise
    except BaseException:
        server.process.end(END_TIMEOUT_S)  # what happened first matters more than whether the server confirms its end
        raise
    server.stop()


def _import_tvm() -> None:
    """Raise SetupMissing for a TVM that cannot be imported, which one that somebody works on may be any time."""
    try:
        importlib.import_module("tvm.rpc")
    except Exception as error:
        raise SetupMissing(
            f"the installed TVM cannot be imported: {type(error).__name__}: {error}",
            hint="`adreno-bench doctor` says which it is and where it lies",
            evidence=traceback.format_exc(),
        ) from None


class RpcSession:
    """One connection to one server process. Implements `device.Session`; made by `open_session`."""

    def __init__(
        self,
        transport: Transport,
        server: Server,
        relay: Relay,
        toggles: Toggles,
        *,
        timeout_s: float,
        probe: DeviceProbe | None = None,
    ) -> None:
        from tvm import rpc

        self.toggles = dict(toggles)
        self.transport = transport
        self._server = server
        self._relay = relay
        self._failure: Failure | None = None
        self.probe = SessionProbe(self, probe or DeviceProbe(None))
        try:
            with self.calling("connecting", timeout_s):
                self.remote = rpc.connect("127.0.0.1", relay.port, key=server.key, session_timeout=SESSION_LIMIT_S)
        except Failure as failure:
            _close_what_tvm_left(relay.port)
            if not isinstance(failure, PathFailure):
                raise
            # No program ran yet: it is not at fault.
            message = f"the RPC server on {transport.name} cannot be used: {failure.message}"
            if server.process.code in KILLED or server.missed_its_port:  # the other one has no client of this key
                raise LinkFailure(message, evidence=failure.evidence) from failure
            raise RigFailure(message, hint=OTHER_SERVER, evidence=failure.evidence) from failure

    def load(self, loadable: Loadable, *, timeout_s: float) -> RpcProgram:
        """Push (by hash), load and initialise a library. Programs are counted from the first one with kernels on."""
        deadline = Deadline(timeout_s)
        if loadable.device == "opencl":
            self.probe.count(deadline)
        pushed = self.bring(loadable.library, loadable.sha256, deadline)
        return RpcProgram(self, loadable, pushed, timeout_s=deadline.remaining_s)

    def bring(self, file: Path, sha256: str, deadline: Deadline) -> PushResult:
        """Push a library, and make sure that it arrived."""
        pushed = self.transport.push(file, sha256, timeout_s=deadline.remaining_s)
        if not pushed.sent_bytes:
            return pushed
        if self.transport.push(file, sha256, timeout_s=deadline.remaining_s).sent_bytes:  # compares hashes
            if sha256_of(file) != sha256:
                raise RigFailure(f"{file} was damaged in the store", hint="run again: the store makes it anew")
            raise LinkFailure(
                f"{file.name} does not arrive on {self.transport.name} with the hash that it should have",
                hint="try another cable",
            )
        return pushed

    def log(self) -> str:
        """Return the newest part of the server's log."""
        return self._server.process.output()

    def download(self, path: str, *, timeout_s: float) -> bytes:
        """Content of a file on the device, by its absolute path; `RigFailure` if it is larger than anything of ours."""
        deadline = Deadline(timeout_s)
        size = self.transport.shell(["stat", "-L", "-c", "%s", path], timeout_s=deadline.remaining_s).stdout.strip()
        if size.isdecimal() and int(size) > TEXT_LIMIT_BYTES:
            message = f"{path} on {self.transport.name} has {size} bytes, more than {TEXT_LIMIT_BYTES >> 20} MiB"
            raise RigFailure(message, hint="adreno-bench did not create this file: remove it")
        with self.calling(f"downloading {path}", deadline.remaining_s):
            return bytes(self.remote.download(path))

    def call(self, function: str, *, timeout_s: float) -> Any:
        """Return what a global function of the server's process returns; None if there is no such function."""
        with self.calling(function, timeout_s):
            try:
                getter = self.remote.get_function(function)
            except AttributeError:
                return None
            return getter()

    def program_counts(self, *, timeout_s: float) -> Mapping[str, int]:
        """Return how many OpenCL programs this process made, and from what; empty if it was not counted."""
        return self.probe.program_counts(Deadline(timeout_s))

    def peak_memory(self, *, timeout_s: float) -> PeakMemory:
        """Return what this process has had at most until now, as the probe reads it."""
        return self.probe.peak_memory(Deadline(timeout_s))

    def opencl_names(self, *, timeout_s: float) -> tuple[str, str] | None:
        """Return the name and driver version of TVM's OpenCL device; None without one.

        Empty of one that cannot be decoded. Raises what opening OpenCL raises: `PathFailure`, for a start.
        """
        device = self.remote.device("opencl", 0)
        with self.calling("opening OpenCL", timeout_s):
            return (_decoded(device, "device_name"), self._driver_version(device)) if device.exist else None

    def _driver_version(self, device: Any) -> str:
        """Return the driver's version as TVM says it; empty where it cannot.

        TVM's runtime reads it into 127 bytes, and OpenCL refuses to shorten a longer one (apache/tvm 0.27
        opencl_device_api.cc). Those of Adreno 630, 650 and 730 are longer; the probe tells them whole.
        """
        try:
            return _decoded(device, "driver_version")
        except Exception:  # TVM raises errors of every kind
            if not self._relay.open:
                raise
            return ""

    def ask(self, module: Path, function: str, *arguments: str, timeout_s: float) -> bytes:
        """Push a TVM module in C, and return the Bytes that a function of it returns."""
        deadline = Deadline(timeout_s)
        pushed = self.bring(module, sha256_of(module), deadline)
        with self.calling(f"asking {module.name} for {function}", deadline.remaining_s):
            return bytes(self.remote.load_module(pushed.path)[function](*arguments))

    @contextmanager
    def calling(self, doing: str, timeout_s: float) -> Iterator[None]:
        """Give a group of remote calls a deadline, and turn what they raise into a `Failure` with an owner."""
        if self._failure:
            raise self._failure
        raise_if_interrupted()
        collecting = gc.isenabled()
        # A thread that frees a remote object in a cycle calls the device. It waits for the connection, which this call
        # has, and keeps Python's lock, which this call needs: for ever.
        gc.disable()
        try:
            try:
                with self._relay.deadline(max(timeout_s, 0.001)):
                    yield
            finally:
                if collecting:
                    gc.enable()
                raise_if_interrupted()
        except Exception as error:
            raise self._diagnosis(error, doing, timeout_s) from error
        except BaseException:
            self._relay.cut()  # an interrupted call leaves the two ends out of step
            raise

    def _diagnosis(self, error: Exception, doing: str, timeout_s: float) -> Failure:
        if self._relay.open:
            return failure_of(str(error), doing)
        self._failure = self._refusal(doing) or self._breakdown(error, doing, timeout_s)
        return self._failure

    def _refusal(self, doing: str) -> RigFailure | None:
        """Return why the relay cut the connection of a server that breaks the protocol; None if it did not."""
        if not self._relay.nonsense:
            return None
        server = f"the RPC server on {self.transport.name}"
        message = f"{server} breaks TVM's protocol: it sent {self._relay.nonsense} while {doing}"
        return RigFailure(message, hint=OTHER_SERVER, evidence=self.log())

    def _breakdown(self, error: Exception, doing: str, timeout_s: float) -> Failure:
        """Find out why the connection broke."""
        expired = self._relay.expired
        try:
            boot = self._boot(patient=not expired)
        except (DeviceFailure, RigFailure) as lost:
            lost.evidence = lost.evidence or self.log()
            return lost
        if self._server.boot not in ("", boot):
            return DeviceLost(f"{self.transport.name} rebooted while {doing}", evidence=self.log())
        if self._relay.died:
            return LinkFailure(f"the relay to {self.transport.name} was killed while {doing}", evidence=self.log())
        ending = "" if expired else self._ending()
        if self._server.process.ended and self._server.process.code is None:
            return DeviceLost(f"{self.transport.name} went away and came back while {doing}", evidence=self.log())
        if expired:
            return Hang(f"{doing} did not end within {timeout_s:g} s", evidence=self.log())
        message, log = f"the process on the device {ending} while {doing}", self.log()
        if line := own_assertion(log):
            message = f"PoCL, this host's OpenCL, ended the process while {doing}: {line}"
        return (RigFailure if line else DeviceCrash)(message, evidence=log or str(error))

    def _boot(self, *, patient: bool) -> str:
        """Id of the device's boot. A phone that writes down a crash may be slow to answer: `patient` asks it again."""
        try:
            return boot_of(self.transport, timeout_s=PROBE_TIMEOUT_S)
        except DeviceFailure:
            if not patient:
                raise
            return boot_of(self.transport, timeout_s=SLOW_PROBE_TIMEOUT_S)

    def _ending(self) -> str:
        """Return how the process on the device ended; its last words may arrive after the connection broke."""
        for _ in Deadline(SLOW_PROBE_TIMEOUT_S).attempts(0.02):
            if (code := self._server.process.code) is not None:
                return how_ended(code)
            if self._server.process.ended:
                break  # without a code: it is not the process that ended but the connection
            if worker := re.search(_WORKER_ENDED, self.log()):
                status = int(worker[1])
                return how_ended(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        return "closed the connection"


class RpcProgram:
    """A Relax VM in the server's process. Implements `device.Program`."""

    def __init__(self, session: RpcSession, loadable: Loadable, pushed: PushResult, *, timeout_s: float) -> None:
        from tvm import relax

        self.pushed = pushed
        self.inferences = 0
        self._session = session
        self._loadable = loadable
        remote = session.remote
        self._host = remote.cpu(0)
        self._device = remote.device(loadable.device, 0)
        started = time.perf_counter()
        with session.calling(f"loading {loadable.library.name}", timeout_s):
            self._library: Any = remote.load_module(pushed.path)
            self._vm: Any = relax.VirtualMachine(self._library, [self._device] * loadable.vdevices + [self._host])
            self._device.sync()
        self.init_ms = (time.perf_counter() - started) * 1e3

    def run(self, inputs: Sequence[Array], *, timeout_s: float) -> tuple[list[Array], float]:
        """Run once. The elapsed ms are the inference alone by this host's clock, without copying inputs and outputs."""
        import tvm.runtime

        entry = self._loadable.entry
        with self._session.calling(f"running {self._loadable.library.name}", timeout_s):
            arguments = [tvm.runtime.tensor(array, self._host) for array in inputs]
            for function in (entry, self._loadable.host_entry):
                self._vm.set_input(function, *arguments)
            started = time.perf_counter()
            self._vm.invoke_stateful(entry)
            self._device.sync()
            self.inferences += 1
            elapsed_ms = (time.perf_counter() - started) * 1e3
            outputs = outputs_of(self._vm.module, entry)
        return outputs, elapsed_ms

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return samples of `host_entry`, by the device's own clock, on the inputs of the last `run`."""
        return self._samples(self._host, self._loadable.host_entry, repeat, timeout_s)

    def timed_answer(self, *, timeout_s: float) -> list[Array]:
        """Return what `host_entry` left at the end of its last inference."""
        with self._session.calling(f"reading what {self._loadable.library.name} timed", timeout_s):
            return outputs_of(self._vm.module, self._loadable.host_entry)

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return samples of `entry` by the device's timer, on the inputs of the last `run`."""
        return self._samples(self._device, self._loadable.entry, repeat, timeout_s)

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of each of `repeat` inferences, seen by the probe while the device's timer runs.

        Raises `RigFailure` without the probe, or if what it saw are not `repeat` inferences that are all alike.
        """
        deadline, probe = Deadline(timeout_s), self._session.probe
        probe.watch_kernels(deadline)
        self.device_ms(repeat, timeout_s=deadline.remaining_s)
        return probe.inferences(repeat, deadline)

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        """One inference's ms in batches of `size` with one synchronisation each, and with one after each inference."""
        machine, entry = self._vm.module, self._loadable.entry
        self.inferences += 2 * size * repeat
        return self._session.probe.batches(machine, entry, size, repeat, Deadline(timeout_s))

    def binaries(self, *, timeout_s: float) -> bytes:
        """Return the OpenCL programs as the device compiled them; `RigFailure` without the probe."""
        return self._session.probe.program_binaries(self._library, Deadline(timeout_s))

    def use_binaries(self, blob: bytes, *, timeout_s: float) -> None:
        """Take programs from `binaries` instead of compiling them."""
        with self._session.calling("loading program binaries", timeout_s):
            self._library.get_function("opencl.SetPreCompiledPrograms", True)(blob)

    def _samples(self, clock: Any, entry: str, repeat: int, timeout_s: float) -> list[float]:
        with self._session.calling(f"timing {self._loadable.library.name}", timeout_s):
            evaluator = self._vm.time_evaluator("invoke_stateful", clock, number=1, repeat=repeat)
            samples = [seconds * 1e3 for seconds in evaluator(entry).results]
            self.inferences += repeat
            if len(samples) != repeat or not all(0 <= sample < math.inf for sample in samples):
                raise ValueError(f"the device timed {repeat} runs with {len(samples)} times, not all of them finite")
            return samples


def _close_what_tvm_left(port: int) -> None:
    """Close the socket that TVM 0.27 leaves open if a server hangs up in their handshake (rpc_socket_impl.cc)."""
    import psutil

    for connection in psutil.Process().net_connections("tcp4"):
        if connection.raddr and connection.raddr.port == port:
            os.close(connection.fd)


def _decoded(device: Any, attribute: str) -> str:
    """Return a device's attribute; TVM's binding refuses a driver's text that is not UTF-8."""
    try:
        return str(getattr(device, attribute) or "")
    except UnicodeDecodeError:
        return ""


def outputs_of(machine: Any, function: str, *place: int) -> list[Array]:
    """Copy what a function of a Relax VM returned last, or one of its results. Raises ValueError beyond any network's.

    `VirtualMachine.get_outputs` would leave a cycle, which keeps the session until Python looks for garbage: TVM has
    room for 32 sessions.
    """
    arrays: list[Array] = []
    left = OUTPUT_LIMIT_BYTES
    for tensor in _leaves(machine, function, *place):
        left -= math.prod(tensor.shape) * tensor.dtype.itemsize
        if left < 0:
            raise ValueError(f"the outputs have more than {OUTPUT_LIMIT_BYTES >> 20} MiB")
        arrays.append(tensor.numpy())
    return arrays


def _leaves(machine: Any, function: str, *place: int) -> Iterator[Any]:
    fields = machine["get_output_arity"](function, *place)
    if fields < 0:
        yield machine["get_output"](function, *place)
    for field in range(fields):
        yield from _leaves(machine, function, *place, field)
