"""What a run measures of a case that is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from harness.measure.correctness import vacuous
from harness.measure.probes.base import Endurance, Facts, Latency, Probe, Step, Vacuity
from harness.measure.probes.batches import enqueue
from harness.measure.probes.labelled import classify
from harness.measure.probes.latency import Timing, measure
from harness.measure.progress import RunStep

if TYPE_CHECKING:
    from device_runner.device import Program, Session
    from harness.base.plan import Budget
    from harness.measure.context import Run
    from harness.measure.probes.reference import Reference
    from harness.measure.work import Preparation, Work


def standard_probes(work: Work, prepared: Preparation, run: Run, step: Step) -> Sequence[Probe]:
    """Return the probes of every case: worth of its answer, labelled data, proof of toggles, times."""
    probes: list[Probe] = [VacuityProbe(work), *([LabelledProbe(work)] if work.labelled else []), ToggleProof(prepared)]
    if not run.timed:
        return probes
    if work.plan.budget.sustain_s:
        return [*probes, SustainedProbe(work, run, step)]
    return [*probes, LatencyProbe(work, prepared, run), BatchProbe(work)]


@dataclass(frozen=True)
class VacuityProbe:
    """What the right answer is worth: it needs no device."""

    work: Work
    step = ""
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[Vacuity]:
        """Hold the oracle to its own judgement."""
        truth = self.work.truth
        yield Vacuity(vacuous(truth.expected, self.work.other, truth.relative_tolerance, truth.rounding))


@dataclass(frozen=True)
class LabelledProbe:
    """Which classes the program gives labelled inputs."""

    work: Work
    step = ""
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Run all labelled inputs."""
        yield classify(program, self.work.labelled, len(self.work.inputs[0]), self.work.plan.budget.timeout_s)


@dataclass(frozen=True)
class ToggleProof:
    """What the session's own process says of its toggles."""

    prepared: Preparation
    step = ""
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Ask the process and read its log."""
        yield self.prepared.cache.proof(session)


@dataclass(frozen=True)
class LatencyProbe:
    """Both clocks and the reference kernel, on a device held at a steady pace."""

    work: Work
    prepared: Preparation
    run: Run
    measure: Callable[[Program, Budget], Timing] = measure
    """What times the program; another one where that was done elsewhere already."""
    step = RunStep.SAMPLING.value
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Sample the program within the thermal limits."""
        plan, kernel = self.work.plan, self.prepared.reference

        def sample() -> tuple[Timing, Reference | None]:
            return self.measure(program, plan.budget), kernel.measure(session) if kernel else None

        (timing, reference), steadiness = self.run.device.steadily(sample, plan.thermal_limits)
        yield Latency(timing, reference, steadiness)


@dataclass(frozen=True)
class BatchProbe:
    """What waiting for each answer costs; after the samples, so that what it takes is in no other number."""

    work: Work
    step = ""
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Time batches, as far as the budget goes."""
        budget, latency = self.work.plan.budget, facts.get(Latency)
        if latency and not budget.quick and (batches := enqueue(program, budget, median(latency.timing.wall_ms))):
            yield batches


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
        from harness.measure.probes.sustained import SustainedRun, sustain

        device, budget, limits = self.run.device, self.work.plan.budget, self.work.plan.thermal_limits
        yield (so_far := SustainedRun(budget.sustain_s))

        def tell(text: str) -> None:
            self.show(f"{RunStep.SAMPLING}: {text}")

        def work() -> None:
            sustain(program, budget, device.pulses(limits), so_far, tell=tell)

        yield Endurance(device.steadily(work, limits)[1])
