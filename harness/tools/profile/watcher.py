"""Kernels watched beside a measurement: after the samples of a case, in the same session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from device_runner.device import Device, Launch, Program, Session
from device_runner.failures import Failure
from harness.base.plan import Budget
from harness.measure.context import Origin
from harness.measure.facts import Facts, Latency
from harness.measure.probes.base import Probe
from harness.measure.records.record import Record
from harness.measure.work import Work
from harness.tools.profile.measure import append_profile, profile_of
from harness.tools.shared.kernels.peaks import load_peaks, peaks_of
from harness.tools.shared.kernels.profile import Launches, Peaks, Profile, kernels_file

SHARE = 0.05
"""Share of a case's budget, if that allows `FEWEST`."""
FEWEST, MOST = 3, 10
"""Inferences that are watched."""


class KernelWatcher:
    """A probe that watches kernels after the samples, and keeps what it saw of the last program."""

    step = ""
    timed = True

    def __init__(self) -> None:
        self._work: Work | None = None
        self._seen: Sequence[Sequence[Launch]] = ()

    def begin(self, device: Device, cache: Path, say: Callable[[str], None]) -> None:
        """Measure the peaks of the device, without which kernels have their times and no roofline."""
        with suppress(Failure):
            peaks_of(device, cache, say)

    def probe(self, work: Work) -> Probe:
        """Return this as the probe of a case, with nothing seen yet."""
        self._work, self._seen = work, ()
        return self

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Watch some inferences. What goes wrong leaves nothing seen: the case is measured already."""
        latency, work = facts.get(Latency), self._work
        if work is None or latency is None or work.plan.budget.quick:
            return
        budget, count = work.plan.budget, inferences_to_watch(work.plan.budget, median(latency.timing.wall_ms))
        with suppress(Failure):
            self._seen = program.launches(count, timeout_s=budget.timeout_s)
            yield Launches(self._seen)

    def keep(self, record: Record, origin: Origin, cache: Path, records: Path) -> None:
        """Append the profile of a record's case, if there is one, to the file beside the records."""
        if profile := self.profile(record, origin, cache):
            append_profile(kernels_file(records), profile)

    def profile(self, record: Record, origin: Origin, cache: Path) -> Profile | None:
        """Profile of a record's case; None if the launches make no sense, or if its time means nothing."""
        work = self._work
        if work is None or not self._seen or work.plan.case.id != record.case or not record.comparable_ms:
            return None
        peaks = load_peaks(cache, origin.identity.key) or Peaks()
        with suppress(Failure, ValueError):  # launches are what the device tells
            return profile_of(work.plan, work.artifact, origin, self._seen, median(record.wall_ms), peaks)
        return None


def inferences_to_watch(budget: Budget, each_ms: float) -> int:
    """Return how many inferences of so many ms are watched."""
    return max(FEWEST, min(MOST, int(SHARE * budget.seconds * 1e3 / max(each_ms, 1e-3))))
