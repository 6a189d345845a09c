"""Keeps a case running, and reads the device after each bin.

A sustained run asks what a cool phone's pace becomes, so heat that slows it is a finding here, and no reason to measure
again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from device_runner.device import Program, Pulse, Session
from harness.base.plan import Budget
from harness.measure.context import Run
from harness.measure.facts import Endurance, Facts, RunningFact
from harness.measure.probes.base import Step
from harness.measure.probes.latency import warm_up
from harness.measure.progress import RunStep
from harness.measure.work import Preparation, Work
from harness.tools.sustain.part import Bin, Sustained, round_digits

CHUNK_S = 1.0
"""Seconds of computing between two readings of the device and reports of progress."""
MOST_BINS, FEWEST_BINS = 600, 20
"""Bins of a complete run: a longer run has longer bins."""
FULL_BIN = 0.9
"""A bin that has lasted for so much of its time is not filled up with another chunk."""


class SustainedRun(RunningFact):
    """A sustained run as it goes: whatever ends it, what was measured until then is there."""

    def __init__(self, asked_s: float) -> None:
        self._asked_s = asked_s
        self._bins: list[Bin] = []
        self._lasted_s = 0.0
        self._throttled: tuple[float, str] | None = None
        self._shows = False
        self._stopped = False

    @property
    def begun(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self._bins)

    def stop(self) -> None:
        """Note that a person stopped it."""
        self._stopped = True

    def add(self, part: Bin, until_s: float) -> None:
        """Add a bin that ended just now."""
        self._bins.append(part)
        self._lasted_s = until_s

    def looked(self, at_s: float, pulse: Pulse) -> None:
        """Note what the phone said of being slowed down by heat."""
        self._shows = self._shows or pulse.shows_heat
        if pulse.slowed and not self._throttled:
            self._throttled = at_s, pulse.slowed

    @property
    def so_far(self) -> Sustained:
        """What a record keeps."""
        columns = {name: list(column) for name, column in zip(Bin._fields, zip(*self._bins, strict=True), strict=False)}
        at_s, why = self._throttled or (None, "")
        return Sustained(
            asked_s=self._asked_s,
            lasted_s=round(self._lasted_s, 2),
            stopped=self._stopped,
            throttled_after_s=None if at_s is None else round(at_s, 1),
            throttled_why=why,
            shows_throttling=self._shows,
            columns={name: column for name, column in columns.items() if any(value is not None for value in column)},
        )


def sustain(
    program: Program,
    budget: Budget,
    look: Callable[[], Pulse],
    into: SustainedRun,
    *,
    tell: Callable[[str], object] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Keep a program that is known to be right running for `budget.sustain_s`, and read the phone after each bin.

    Warms up first. `tell` hears about once a second how it goes. Raises what `program` and `look` raise; `into` then
    has what was measured before.
    """
    asked_s = budget.sustain_s
    every_s = max(asked_s / MOST_BINS, min(CHUNK_S, asked_s / FEWEST_BINS))
    typical_ms = warm_up(program, budget, clock)[-1]
    pulse = look()
    into.looked(0.0, pulse)
    began = clock()
    while (at_s := clock() - began) < asked_s:
        times: list[float] = []
        while (left_s := every_s - (clock() - began - at_s)) > (1 - FULL_BIN) * every_s or not times:
            repeat = max(1, int(1e3 * min(CHUNK_S, left_s) / max(typical_ms, 1e-3)))
            times += program.wall_ms(repeat, timeout_s=budget.timeout_s)
            typical_ms = statistics.median(times[-repeat:])
            tell(_progress(clock() - began, asked_s, typical_ms, pulse))
        pulse = look()
        until_s = clock() - began
        into.add(_bin(at_s, times, pulse), until_s)
        into.looked(until_s, pulse)


def _bin(at_s: float, times: Sequence[float], pulse: Pulse) -> Bin:
    ordered = sorted(times)
    return Bin(
        at_s=round(at_s, 2),
        wall_ms=round_digits(statistics.median(ordered)),
        p90_ms=round_digits(ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]),
        inferences=len(ordered),
        **{name: value for name, value in vars(pulse).items() if name in Bin._fields},
    )


def _progress(at_s: float, asked_s: float, ms: float, pulse: Pulse) -> str:
    heat = [f"{pulse.gpu_c:.0f} °C"] if pulse.gpu_c is not None else []
    level = [f"power level {pulse.power_level}"] if pulse.power_level else []
    return ", ".join([f"{min(at_s, asked_s):.0f} of {asked_s:g} s", f"{ms:.4g} ms", *heat, *level])


@dataclass(frozen=True)
class SustainedProbe:
    """Keeps the case running from within the thermal limits on; what heat makes of it then is what is asked for."""

    work: Work
    run: Run
    show: Step
    step = RunStep.SAMPLING.value
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Run for as long as the budget says. What was collected until a failure is a fact already."""
        device, budget, limits = self.run.device, self.work.plan.budget, self.work.plan.thermal_limits
        yield (so_far := SustainedRun(budget.sustain_s))

        def tell(text: str) -> None:
            self.show(f"{RunStep.SAMPLING}: {text}")

        read = device.pulses(limits)

        def look() -> Pulse:
            self.run.watch.note(pulse := read())
            return pulse

        def work() -> None:
            with self.run.watch.paused():
                sustain(program, budget, look, so_far, tell=tell)

        yield Endurance(device.steadily(work, limits)[1])


def make_probe(work: Work, prepared: Preparation, run: Run, step: Step) -> SustainedProbe | None:
    """Return the probe of a sustained run; None for a case that is sampled."""
    return SustainedProbe(work, run, step) if work.plan.budget.sustain_s else None
