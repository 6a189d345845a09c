"""`run --repeat`: more inferences of a case, each on inputs of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.tool import Tool

if TYPE_CHECKING:
    from harness.measure.context import Run
    from harness.measure.probes.base import Probe, Step
    from harness.measure.work import Preparation, Work

TOOL = Tool("repeat", probes=("harness.tools.repeat:make_probe",))


def make_probe(work: Work, prepared: Preparation, run: Run, step: Step) -> Probe | None:
    """Return what judges further inferences; None of a case that has no further draws of its inputs."""
    if not work.plan.repeats:
        return None
    from harness.tools.repeat.probe import RepeatProbe

    return RepeatProbe(work.plan, work.repeats, work.truth.inputs)
