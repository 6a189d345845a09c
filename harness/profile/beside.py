"""Kernels watched beside a measurement: after the samples of a case, in the same session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from device_runner.failures import Failure
from harness.profile.measure import profile_of
from harness.profile.peaks import known_peaks
from harness.profile.profile import Peaks, Profile

if TYPE_CHECKING:
    from device_runner.device import Launch, Program
    from harness.build.artifact import Artifact
    from harness.cases.plan import Plan
    from harness.probes.latency import Timing
    from harness.run.context import Origin
    from harness.run.record import Record

SHARE = 0.05
"""Of a case's budget, if that allows `FEWEST`."""
FEWEST, MOST = 3, 10
"""Inferences that are watched."""


@dataclass(frozen=True)
class Seen:
    """The launches of a program that was measured."""

    plan: Plan
    artifact: Artifact
    inferences: Sequence[Sequence[Launch]]


class Watcher:
    """Watches each program that was timed (`harness.run.context.Run.watch`), and keeps what it saw of the last."""

    def __init__(self) -> None:
        self.seen: Seen | None = None

    def __call__(self, program: Program, plan: Plan, artifact: Artifact, timing: Timing) -> None:
        """Watch some inferences. What goes wrong leaves nothing seen: the case is measured already."""
        self.seen = None
        if plan.budget.quick:
            return
        affordable = int(SHARE * plan.budget.seconds * 1e3 / max(median(timing.wall_ms), 1e-3))
        with suppress(Failure):
            inferences = program.launches(max(FEWEST, min(MOST, affordable)), timeout_s=plan.budget.timeout_s)
            self.seen = Seen(plan, artifact, inferences)

    def profile(self, record: Record, origin: Origin, cache: Path) -> Profile | None:
        """Where the time of a record's case went; None if nothing sensible was seen, or its time means nothing."""
        seen = self.seen
        if seen is None or seen.plan.case.id != record.case or not record.comparable_ms:
            return None
        peaks = known_peaks(cache, origin.identity.key) or Peaks()
        with suppress(Failure, ValueError):  # launches are what the device tells
            return profile_of(seen.plan, seen.artifact, origin, seen.inferences, median(record.wall_ms), peaks)
        return None
