"""More inferences, each on inputs of its own: what is right on one draw of the inputs may be wrong on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from device_runner.device import Array, Program, Session
from harness.base.plan import Plan
from harness.measure.context import Run
from harness.measure.correctness import Truth
from harness.measure.facts import Accuracy, Facts
from harness.measure.probes.base import Step
from harness.measure.work import Preparation, Work


def make_probe(work: Work, prepared: Preparation, run: Run, step: Step) -> RepeatProbe | None:
    """Return what judges further inferences; None of a case that has no further draws of its inputs."""
    return RepeatProbe(work.plan, work.repeats, work.truth.inputs) if work.plan.repeats else None


@dataclass(frozen=True)
class RepeatProbe:
    """Judges an inference on each further draw of the inputs, until one is wrong."""

    plan: Plan
    truths: Callable[[], Iterator[Truth]]
    """Yields what answers to each further draw are judged by."""
    inputs: Sequence[Array]
    """The case's own, which it is left on: a program is timed, and judged again, on what it ran on last."""
    step = "judging more inferences"
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[Accuracy]:
        """Yield the accuracy of the inference that is furthest off its tolerance, or wrong."""
        worst, count = facts[Accuracy], len(self.plan.repeats) + 1
        for number, truth in enumerate(self.truths(), 2):
            outputs, _ = program.run(truth.inputs, timeout_s=self.plan.budget.timeout_s)
            accuracy = truth.judge(outputs)
            if not accuracy.right:
                complaint = f"on draw {number} of {count} of its inputs: {accuracy.complaint}"
                yield replace(accuracy, complaint=complaint, draws=number)
                return
            worst = max(worst, accuracy, key=lambda each: each.max_abs_err / (each.tolerance or 1.0))
        program.run(self.inputs, timeout_s=self.plan.budget.timeout_s)
        yield replace(worst, draws=count)
