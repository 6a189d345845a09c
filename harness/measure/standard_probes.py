"""What a run measures of a case that is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from device_runner.device import Program, Session
from device_runner.names import load
from harness.base.tool import tools
from harness.measure.again import LARGEST_SHARE, RUNS, WrongByNow, judge_again
from harness.measure.context import Run
from harness.measure.correctness import vacuity
from harness.measure.facts import Facts, FirstRun, Latency, Reference, Timing, Vacuity
from harness.measure.probes.base import Probe, Step
from harness.measure.probes.batches import enqueue
from harness.measure.probes.latency import measure
from harness.measure.progress import RunStep
from harness.measure.work import Preparation, Work

ProbeMaker = Callable[[Work, Preparation, Run, Step], Probe | None]
"""Makes a probe of one case, or None. `Tool.probes` names the places of such functions.

It is asked for each case before its session opens, so the module that has it should import little. A fact that the
probe yields is kept as a part of the record if its type is registered in `Tool.record_parts`."""


def standard_probes(work: Work, prepared: Preparation, run: Run, step: Step) -> Sequence[Probe]:
    """Return the probes of a case: worth of its answer, proof of toggles, times, and those of tools.

    What is timed comes last: a wrong answer gets no latency.
    """
    probes: list[Probe] = [UntimedProbe(lambda _: _vacuity_of(work))]
    makers: list[ProbeMaker] = [load(place) for tool in tools() for place in tool.probes]
    added = [probe for make in makers if (probe := make(work, prepared, run, step))]
    probes += [*(probe for probe in added if not probe.timed), UntimedProbe(prepared.cache.proof)]
    if not run.timed:
        return probes
    if not work.plan.budget.sustain_s:
        probes += [LatencyProbe(work, prepared, run), BatchProbe(work, run)]
    return [*probes, *(probe for probe in added if probe.timed)]


@dataclass(frozen=True)
class UntimedProbe:
    """A probe of one fact, which takes no time of the device."""

    look: Callable[[Session], object]
    """Returns the fact."""
    step = ""
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Yield the fact."""
        yield self.look(session)


def _vacuity_of(work: Work) -> Vacuity:
    """Return whether a right answer proves anything: the oracle is held to its own judgement."""
    truth = work.truth
    return vacuity(truth.expected, work.other, truth.relative_tolerance, truth.rounding, truth.leeway)


@dataclass(frozen=True)
class LatencyProbe:
    """Both clocks and the reference kernel, on a device held at a steady pace."""

    work: Work
    prepared: Preparation
    run: Run
    measure: Callable[..., Timing] = measure
    """What times the program; another one where that was done elsewhere already."""
    step = RunStep.SAMPLING.value
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Sample the program within the thermal limits."""
        plan, kernel, first = self.work.plan, self.prepared.reference, facts.get(FirstRun)
        first_ms = first.ms if first else 0.0

        def look(each_ms: float) -> None:
            cheap = RUNS * each_ms <= 1e3 * LARGEST_SHARE * plan.budget.seconds
            if cheap and not judge_again(program, self.work.truth, facts, plan.budget.timeout_s):
                raise WrongByNow

        def sample() -> tuple[Timing, Reference | None]:
            with self.run.watch.paused():
                timing = self.measure(program, plan.budget, look, first_ms=first_ms)
                return timing, kernel.measure(session) if kernel else None

        try:
            (timing, reference), steadiness = self.run.device.steadily(sample, plan.thermal_limits)
        except WrongByNow:
            return  # the facts say so
        yield Latency(timing, reference, steadiness)


@dataclass(frozen=True)
class BatchProbe:
    """Measures the cost of waiting for each answer; after the samples, so that it is in no other number."""

    work: Work
    run: Run
    step = ""
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Time batches, as far as the budget goes."""
        budget, latency = self.work.plan.budget, facts.get(Latency)
        if not latency or budget.quick:
            return
        with self.run.watch.paused():
            batches = enqueue(program, budget, median(latency.timing.wall_ms))
        if batches:
            yield batches
