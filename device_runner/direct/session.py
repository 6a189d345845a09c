"""A session of a direct device: one process, and the programs loaded in it.

Whatever goes wrong is traced to its owner as in a session over RPC (`device_runner.session.rpc_session`): the process
did not answer in time, it died, or TVM reports an error of the program.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.deadline import Deadline
from device_runner.device import Loadable, Pushed, Toggles
from device_runner.direct.wire import packed, unpacked
from device_runner.failures import EVIDENCE_LIMIT_BYTES, DeviceCrash, Failure, Hang, RigFailure, SetupMissing
from device_runner.runtimes.probe import BadAnswer, Probe
from device_runner.session.probing import SessionProbe
from device_runner.session.tvm_errors import failure_of, how_ended

if TYPE_CHECKING:
    from device_runner.device import Array, Launch

END_TIMEOUT_S = 5.0
DOWNLOAD_LIMIT_BYTES = 256 << 20
OURS = str(Path(__file__).parents[2])
"""Where our packages are found: a folder, or the archive that we run from."""
CODE = f"import sys; sys.path.insert(0, {OURS!r}); from device_runner.direct.worker import main; main()"


@contextmanager
def open_session(
    libraries: Sequence[Path], toggles: Toggles, *, timeout_s: float, probe: Probe, searched: str = ""
) -> Iterator[DirectSession]:
    """A process with these libraries and toggles; killed when the context ends.

    `searched` is a folder in which the loader looks for libraries first.
    """
    with tempfile.TemporaryFile() as log:
        session = DirectSession(libraries, toggles, log.fileno(), timeout_s, probe, searched)
        try:
            yield session
        finally:
            session.end()


class DirectSession:
    """Implements `device.Session`; made by `open_session`."""

    def __init__(
        self,
        libraries: Sequence[Path],
        toggles: Toggles,
        log: int,
        timeout_s: float,
        probe: Probe,
        searched: str,
    ) -> None:
        self.toggles = dict(toggles)
        self._log = log
        self._failure: Failure | None = None
        self._until: Deadline | None = None
        self.probe = SessionProbe(self, probe)
        self.remote = _Modules(self)
        self._answers, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", CODE, str(os.getpid()), str(theirs), *map(str, libraries)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[theirs],
                env={**os.environ, **_search(searched), **toggles},
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        try:
            with self.calling("loading TVM's runtime", timeout_s):
                self._receive()
        except Failure as failure:
            self.end()
            message = f"TVM's runtime does not load on this machine: {failure.message}"
            hint = "is it a machine of the kind that this was made for, with an OpenCL loader (libOpenCL.so.1)?"
            raise SetupMissing(message, hint=hint, evidence=failure.evidence) from failure

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self._failure else END_TIMEOUT_S)
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # a driver may hold it in the kernel
                self._process.wait(END_TIMEOUT_S)
        with suppress(OSError):
            os.close(self._answers)

    def ask(self, do: str, arrays: Sequence[Array] = (), blob: bytes = b"", **values: Any) -> Any:
        """What the process says to a request; only within `calling`."""
        assert self._process.stdin
        self._process.stdin.write(packed({"do": do, **values}, arrays, blob))
        self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> Any:
        told, arrays, blob = unpacked(self._read)
        if "error" in told:
            raise _Told(told["error"])
        if told.get("bytes"):
            return blob
        return (arrays, told["ok"]) if arrays else told["ok"]

    def _read(self, size: int) -> bytes:
        assert self._until
        parts: list[bytes] = []
        while size:
            if not select.select([self._answers], [], [], self._until.remaining_s)[0]:
                raise TimeoutError
            piece = os.read(self._answers, min(size, 1 << 20))
            if not piece:
                raise EOFError
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)

    @contextmanager
    def calling(self, doing: str, timeout_s: float) -> Iterator[None]:
        """Give a group of requests a deadline, and turn what goes wrong into a `Failure` with an owner."""
        if self._failure:
            raise self._failure
        self._until = Deadline(max(timeout_s, 0.001))
        try:
            yield
        except _Told as error:
            raise failure_of(str(error), doing) from None
        except TimeoutError:
            self._failure = Hang(f"{doing} did not end within {timeout_s:g} s", evidence=self.log())
            raise self._failure from None
        except (EOFError, BrokenPipeError):
            self._failure = DeviceCrash(f"the process {self._ending()} while {doing}", evidence=self.log())
            raise self._failure from None

    def _ending(self) -> str:
        try:
            code = self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return how_ended(128 - code if code < 0 else code)

    def load(self, loadable: Loadable, *, timeout_s: float) -> DirectProgram:
        """Load and initialise a library. Programs are counted from the first one with kernels on."""
        deadline = Deadline(timeout_s)
        if loadable.device == "opencl":
            self.probe.count(deadline)
        return DirectProgram(self, loadable, timeout_s=deadline.remaining_s)

    def bring(self, file: Path, sha256: str, deadline: Deadline) -> Pushed:
        """There is nothing to push: the file is here."""
        return Pushed(str(file.resolve()), 0)

    def log(self) -> str:
        """The newest part of what the process printed."""
        size = os.fstat(self._log).st_size
        newest = os.pread(self._log, EVIDENCE_LIMIT_BYTES, max(0, size - EVIDENCE_LIMIT_BYTES))
        return newest.decode(errors="replace")

    def download(self, path: str, *, timeout_s: float) -> bytes:
        """Content of a file; `RigFailure` if it is larger than anything of ours."""
        file = Path(path)
        if file.stat().st_size > DOWNLOAD_LIMIT_BYTES:
            raise RigFailure(f"{path} has more than {DOWNLOAD_LIMIT_BYTES >> 20} MiB", hint="it is none of our files")
        return file.read_bytes()

    def call(self, function: str, *, timeout_s: float) -> Any:
        """What a global function of the process returns; None if there is no such function."""
        with self.calling(function, timeout_s):
            return self.ask("global", function=function)

    def program_counts(self, *, timeout_s: float) -> Mapping[str, int]:
        """How many OpenCL programs this process made, and from what; empty if it was not counted."""
        return self.probe.program_counts(Deadline(timeout_s))

    def opencl_names(self, *, timeout_s: float) -> tuple[str, str] | None:
        """Name and driver version of the OpenCL device that TVM's runtime uses; None if there is none."""
        with self.calling("opening OpenCL", timeout_s):
            told = self.ask("names")
        return (told[0], told[1]) if told else None

    def opencl_peaks(self, *, timeout_s: float) -> Mapping[str, float]:
        """What the OpenCL device does at best, in bytes and operations per second, measured now by the probe."""
        deadline = Deadline(timeout_s)
        names = self.opencl_names(timeout_s=deadline.remaining_s)
        try:
            return self.probe.peaks(*names, deadline) if names else {}
        except BadAnswer as bad:
            raise RigFailure(f"what the probe measured makes no sense: {bad}") from bad


def _search(folder: str) -> dict[str, str]:
    """The variable that makes the loader look into a folder first; nothing for none."""
    folders = [folder, os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, folders))} if folder else {}


class DirectProgram:
    """A Relax VM in the session's process. Implements `device.Program`."""

    def __init__(self, session: DirectSession, loadable: Loadable, *, timeout_s: float) -> None:
        self.pushed = Pushed(str(loadable.library), 0)
        self._session = session
        self._loadable = loadable
        self._name = loadable.library.name
        began = time.perf_counter()
        with session.calling(f"loading {self._name}", timeout_s):
            self._module: int = session.ask("module", path=str(loadable.library))
            self._machine: int = session.ask(
                "machine", module=self._module, device=loadable.device, vdevices=loadable.vdevices
            )
        self.init_ms = (time.perf_counter() - began) * 1e3

    def run(self, inputs: Sequence[Array], *, timeout_s: float) -> tuple[list[Array], float]:
        """Run once: outputs and elapsed ms, without copying inputs and outputs."""
        entries = [self._loadable.entry, self._loadable.host_entry]
        with self._session.calling(f"running {self._name}", timeout_s):
            outputs, elapsed_ms = self._session.ask(
                "run", inputs, machine=self._machine, entry=entries[0], entries=entries
            )
        return outputs, elapsed_ms

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Samples of `host_entry`, by the host's clock, on the inputs of the last `run`."""
        return self._samples(self._loadable.host_entry, "cpu", repeat, timeout_s)

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Samples of `entry` by the device's timer, on the inputs of the last `run`."""
        return self._samples(self._loadable.entry, self._loadable.device, repeat, timeout_s)

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """The kernels of each of `repeat` inferences, seen by the probe while the device's timer runs."""
        deadline = Deadline(timeout_s)
        self._session.probe.require_watching(deadline)
        self.device_ms(repeat, timeout_s=deadline.remaining_s)
        return self._session.probe.inferences(repeat, deadline)

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        """One inference's ms in batches of `size` with one synchronisation each, and with one after each inference."""
        machine = _Module(self._session, self._machine, "machine")
        return self._session.probe.batches(machine, self._loadable.entry, size, repeat, Deadline(timeout_s))

    def binaries(self, *, timeout_s: float) -> bytes:
        """The OpenCL programs as the device compiled them; `RigFailure` without the probe."""
        module = _Module(self._session, self._module)
        return self._session.probe.require_binaries(module, Deadline(timeout_s))

    def use_binaries(self, blob: bytes, *, timeout_s: float) -> None:
        """Take programs from `binaries` instead of compiling them."""
        with self._session.calling("loading program binaries", timeout_s):
            function = "opencl.SetPreCompiledPrograms"
            self._session.ask("call", module=self._module, function=function, values=[], blob=blob)

    def _samples(self, entry: str, clock: str, repeat: int, timeout_s: float) -> list[float]:
        with self._session.calling(f"timing {self._name}", timeout_s):
            taken: list[float] = self._session.ask(
                "samples", machine=self._machine, entry=entry, clock=clock, repeat=repeat
            )
        return taken


class _Modules:
    """How the probe reaches its module in the process: as over RPC."""

    def __init__(self, session: DirectSession) -> None:
        self._session = session

    def load_module(self, path: str) -> _Module:
        """A library, loaded."""
        return _Module(self._session, self._session.ask("module", path=path))


class _Module:
    """A module in the process, or a virtual machine, which is one, too."""

    def __init__(self, session: DirectSession, number: int, kind: str = "module") -> None:
        self._session, self.number, self.kind = session, number, kind

    def __getitem__(self, function: str) -> Any:
        def call(*values: Any) -> Any:
            sent = [{value.kind: value.number} if isinstance(value, _Module) else value for value in values]
            return self._session.ask("call", module=self.number, function=function, values=sent)

        return call


class _Told(Exception):
    """An error that TVM raised in the process."""
