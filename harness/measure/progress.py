"""Progress of a run. The command line draws it, and a test may collect it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.device import Pulse
    from harness.measure.records.record import Record

BUILDING = "building"


class RunStep(str, Enum):
    """Steps of a case, in this order. `device lost` comes at any time, followed by the recovery step."""

    PREPARING = "preparing"
    LOADING = "loading"
    FIRST_RUN = "first run"
    SAMPLING = "sampling"
    DEVICE_LOST = "device lost"

    def __str__(self) -> str:
        return self.value


class Progress:
    """Base of progress displays, which ignores every call. Several threads call it."""

    watches_devices = False
    """Whether the state of devices is read while they work."""

    def say(self, text: str) -> None:
        """Print a line for people."""

    def pushing(self, sent_bytes: int, total_bytes: int) -> None:
        """Show how much of a file the device has."""

    def build(self, title: str, state: str, seconds: float) -> None:
        """Show a build as `queued`, `building` (`building: lower`), then `built`, `reused` or `failed` in `seconds`."""

    def expect(self, case_ids: Sequence[str]) -> None:
        """Announce the cases of a run, by id."""

    def begin(self, cases: int) -> None:
        """Announce more cases."""

    def step(self, case_id: str, step: str) -> None:
        """Show that a case has reached a step: a `RunStep` or a text that begins with one; empty at its end.

        Other work with steps, such as a reduction, uses it in the same way.
        """

    def pulse(self, device: str, pulse: Pulse) -> None:
        """Show the state of a device. Only where `watches_devices`."""

    def done(self, record: Record) -> None:
        """Show that a case has its outcome."""


def on_device(case_id: str, device: str) -> str:
    """Return what a case is called while several devices are at work."""
    return f"{case_id} on {device}"


class SilentProgress(Progress):
    """Ignores all progress."""


class ProgressTee(Progress):
    """Passes everything on, and also reports the steps, such as for a list of devices in use."""

    def __init__(self, progress: Progress, tell: Callable[[str, str], None]) -> None:
        self._progress = progress
        self._tell = tell
        self.watches_devices = progress.watches_devices

    def say(self, text: str) -> None:
        """Pass it on."""
        self._progress.say(text)

    def pushing(self, sent_bytes: int, total_bytes: int) -> None:
        """Pass it on."""
        self._progress.pushing(sent_bytes, total_bytes)

    def build(self, title: str, state: str, seconds: float) -> None:
        """Pass it on, and report what is being built: the case has no step before that."""
        if state.startswith(BUILDING):
            self._tell(title, state)
        self._progress.build(title, state, seconds)

    def begin(self, cases: int) -> None:
        """Pass it on."""
        self._progress.begin(cases)

    def step(self, case_id: str, step: str) -> None:
        """Pass it on, and report it."""
        self._tell(case_id, step)
        self._progress.step(case_id, step)

    def pulse(self, device: str, pulse: Pulse) -> None:
        """Pass it on."""
        self._progress.pulse(device, pulse)

    def done(self, record: Record) -> None:
        """Pass it on. Between two cases there is no step."""
        self._tell("", "")
        self._progress.done(record)


Clock = Callable[[], float]
"""Seconds from some beginning on, such as `time.monotonic`."""

STILL = "still: "
"""Beginning of a line that is printed after a long silence."""


class Tally:
    """Counts what is done of what is to be done."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._total = self._done = 0

    def expect(self, count: int) -> None:
        """Announce more items. After a pause the clock starts anew."""
        if self._done == self._total:
            self._began, self._total, self._done = self._clock(), 0, 0
        self._total += count

    def did(self, count: int = 1) -> None:
        """More items are done; unexpected ones do not count."""
        self._done = min(self._total, self._done + count)

    def __str__(self) -> str:
        """`3 of 9, about 2 min left`: how many are done; empty when there is nothing to do."""
        if self._done == self._total:
            return ""
        if not self._done:
            return f"0 of {self._total}"
        left_s = (self._clock() - self._began) / self._done * (self._total - self._done)
        return f"{self._done} of {self._total}, about {duration(left_s)} left"


class Silence:
    """When to print in a silence: after 5 s, then more rarely, at least once a minute; anew after each line."""

    FIRST_S, LONGEST_S = 5.0, 60.0

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.broken()

    def broken(self) -> None:
        """Note that a line was printed."""
        self._since, self._gap_s = self._clock(), self.FIRST_S

    @property
    def too_long(self) -> bool:
        """Whether to print now; if so, the next time is later."""
        if self._clock() - self._since < self._gap_s:
            return False
        self._since, self._gap_s = self._clock(), min(2 * self._gap_s, self.LONGEST_S)
        return True


def duration(seconds: float) -> str:
    """Return a time that is left, in the words of all progress: `40 s`, `2 min`, `1.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
