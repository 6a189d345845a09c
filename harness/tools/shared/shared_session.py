"""One session for many programs, where each takes less time than starting a process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from typing_extensions import Self

from device_runner.device import Device, Loadable, Program, Session
from device_runner.failures import Failure
from harness.measure.correctness import Truth
from harness.measure.facts import Facts
from harness.measure.loop import measure
from harness.measure.probes.base import Probe


class SharedSession:
    """A session that is opened when it is needed; `end` ends it, as leaving it as a context does."""

    def __init__(self, device: Device, programs: int, timeout_s: float) -> None:
        """`programs` run in one process at most, because each leaves a little behind."""
        self._device = device
        self._most = programs
        self._timeout_s = timeout_s
        self._stack = contextlib.ExitStack()
        self._session: Session | None = None
        self.programs = 0
        """How many ran in this session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the session. The next program begins another."""
        self._session, self.programs = None, 0
        with contextlib.suppress(Failure):  # of a process that is to end anyway
            self._stack.close()

    def reserve(self, programs: int) -> None:
        """See that so many more fit into one session."""
        if self.programs + programs > self._most:
            self.end()

    def measure(self, library: Loadable, truth: Truth, probes: Iterable[Probe], facts: Facts) -> Program:
        """Put a program through the loop (`harness.measure.loop.measure`). Raises what that raises."""
        self.reserve(1)
        if self._session is None:
            self._session = self._stack.enter_context(self._device.session({}, timeout_s=self._timeout_s))
        self.programs += 1
        return measure(library, truth, self._session, probes, facts, timeout_s=self._timeout_s)
