"""Sustained runs: a case that is kept running without a pause, and what heat makes of its pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.tool import Command, Tool

if TYPE_CHECKING:
    from harness.measure.context import Run
    from harness.measure.probes.base import Probe, Step
    from harness.measure.work import Preparation, Work

TOOL = Tool(
    "sustain",
    commands=(
        Command(
            "sustained",
            "Show sustained runs: the first and the last minute, and when heat slowed the phone down.",
            "Explain",
            "harness.tools.sustain.command:sustained",
            formerly="show --sustained",
        ),
    ),
    probes=("harness.tools.sustain:make_probe",),
    record_parts={"sustained": "harness.tools.sustain.part:Sustained"},
    part_views={"sustained": "harness.tools.sustain.view:VIEW"},
)


def make_probe(work: Work, prepared: Preparation, run: Run, step: Step) -> Probe | None:
    """Return the probe of a sustained run; None for a case that is sampled."""
    if not work.plan.budget.sustain_s:
        return None
    from harness.tools.sustain.measure import SustainedProbe

    return SustainedProbe(work, run, step)
