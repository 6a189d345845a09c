"""The probe in a session's process: loaded at first need, and done without where that fails."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from device_runner.deadline import Deadline
from device_runner.device import Launch, PeakMemory, PushResult
from device_runner.failures import DeviceCrash, Hang, PathFailure, RigFailure
from device_runner.runtimes.probe import DeviceProbe
from device_runner.runtimes.probe.answers import (
    BadAnswer,
    OpenClReport,
    answer_of,
    batches_of,
    counts_of,
    launches_of,
    memory_of,
)

R = TypeVar("R")


class Process(Protocol):
    """The process that loads the probe: `RpcSession`."""

    remote: Any

    def bring(self, file: Path, sha256: str, deadline: Deadline) -> PushResult:
        """Push a library."""

    def calling(self, doing: str, timeout_s: float) -> AbstractContextManager[None]:
        """Bound a group of remote calls by a deadline, and name them in what they raise."""


class SessionProbe:
    """What the probe does in one process. Where it is lacking, answers are None or empty, and `DeviceProbe` says why.

    Every method raises `DeviceCrash` or `Hang` if the process that it asks ends or falls silent. If that happens twice
    in a row, the probe is not used on this device again.
    """

    def __init__(self, session: Process, probe: DeviceProbe) -> None:
        self._session: Process = weakref.proxy(session)  # a cycle would keep it, and TVM has room for 32 sessions
        self._probe = probe
        self._module: Any = None
        self._counted_places = 0
        self._watched_places = 0

    @property
    def lacking(self) -> str:
        """Why the probe is not used, in one line; empty if it is."""
        return self._probe.lacking

    def count(self, deadline: Deadline) -> None:
        """Begin to count the programs that TVM's runtime makes; load the probe for it."""
        if not self._counted_places:
            self._counted_places = self._ask("count_programs", deadline, int) or 0

    def describe(self, deadline: Deadline) -> OpenClReport | None:
        """Return what the process's OpenCL says of itself."""
        return self._ask("describe", deadline, lambda text: answer_of(bytes(text)))

    def program_counts(self, deadline: Deadline) -> dict[str, int]:
        """`programs_from_source` and `programs_from_binary` since `count`; empty if they were not counted."""
        counts = self._ask("programs", deadline, lambda text: counts_of(bytes(text))) if self._counted_places else None
        return counts or {}

    def peak_memory(self, deadline: Deadline) -> PeakMemory:
        """Return what the process has had at most until now."""
        return self._ask("memory", deadline, lambda text: memory_of(bytes(text))) or PeakMemory()

    def watch_kernels(self, deadline: Deadline) -> None:
        """Begin to keep launches of kernels, and forget those kept so far. Raises `RigFailure` if they are not seen."""
        if not self._watched_places:
            self._watched_places = self._ask("watch_kernels", deadline, int) or 0
        if not self._watched_places or self._ask("launches", deadline, bytes) is None:
            why = self.lacking or "TVM's runtime launches them in an unknown way"
            raise RigFailure(
                f"kernels cannot be watched: {why}", hint="`adreno-bench doctor --device NAME` shows the cause"
            )

    def inferences(self, repeat: int, deadline: Deadline) -> list[list[Launch]]:
        """Return the launches since `watch_kernels`, as so many inferences.

        Raises `RigFailure` if they are not alike.
        """
        try:
            launches, dropped = launches_of(self._ask("launches", deadline, bytes) or b"")
        except BadAnswer as bad:
            raise RigFailure(f"the probe's launches of kernels cannot be read: {bad}") from bad
        if dropped:
            raise RigFailure(f"the probe had no room for {dropped} launches of kernels")
        each, rest = divmod(len(launches), repeat)
        inferences = [launches[start : start + each] for start in range(0, repeat * each, each or 1)]
        if rest or len({tuple(launch.kernel for launch in inference) for inference in inferences}) > 1:
            raise RigFailure(f"{len(launches)} launches of kernels are not {repeat} equal inferences")
        return inferences

    def batches(
        self, machine: Any, entry: str, size: int, repeat: int, deadline: Deadline
    ) -> tuple[list[float], list[float]]:
        """See `device.Program.batches`, on the inputs of the last run. Raises `RigFailure` without the probe."""
        if self._loaded(deadline) is None:
            raise RigFailure(f"batches cannot be timed without the probe: {self.lacking}")
        with self._session.calling("timing batches of inferences", deadline.remaining_s):
            answer = bytes(self._module["batches"](machine, entry, size, repeat))
        try:
            return batches_of(answer, repeat)
        except BadAnswer as bad:
            raise RigFailure(f"the probe's times cannot be read: {bad}") from bad

    def program_binaries(self, module: Any, deadline: Deadline) -> bytes:
        """Return a module's OpenCL programs as the device compiled them; `RigFailure` without the probe.

        TVM's own runtime returns them as a String, which RPC ends at its first zero byte: about one arrives. Raises
        what compiling them raises.
        """
        if self._loaded(deadline) is None:
            message = f"program binaries cannot be read without the probe: {self.lacking}"
            raise RigFailure(message, hint="`adreno-bench doctor --device NAME` shows the cause")
        with self._session.calling("reading program binaries", deadline.remaining_s):
            return bytes(self._module["program_binaries"](module))

    def _ask(self, function: str, deadline: Deadline, read: Callable[[Any], R]) -> R | None:
        """Return what the probe answers, read by `read`; None without the probe, or if the answer makes no sense."""
        if self._loaded(deadline) is None:
            return None
        with self._blamed(function), self._session.calling(f"asking the probe to {function}", deadline.remaining_s):
            answer = self._module[function]()
            try:
                return None if answer is None else read(answer)
            except (BadAnswer, ValueError, TypeError) as bad:
                self._probe.lacking = f"its answer makes no sense: {bad}"
        return None

    def _loaded(self, deadline: Deadline) -> Any:
        file = self._probe.ready()
        if file is None:
            return None
        if self._module is None:
            pushed = self._session.bring(*file, deadline)
            with self._blamed("load"), self._session.calling("loading the probe", deadline.remaining_s):
                self._module = self._session.remote.load_module(pushed.path)
        return self._module

    @contextmanager
    def _blamed(self, function: str) -> Iterator[None]:
        """Do without the probe where it fails; an end of the whole process is raised all the same."""
        try:
            yield
        except (DeviceCrash, Hang) as failure:
            self._probe.broke(function, failure.message)
            raise
        except PathFailure as failure:
            self._probe.lacking = failure.message
        else:
            self._probe.worked(function)
