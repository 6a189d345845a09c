"""Labelled data: how many inputs a path gets right, or what a person's function makes of its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.tool import CacheKind, Tool

if TYPE_CHECKING:
    from harness.measure.context import Run
    from harness.measure.probes.base import Probe, Step
    from harness.measure.work import Preparation, Work

TOOL = Tool(
    "labelled",
    labelled="harness.tools.labelled.data:open_data",
    probes=("harness.tools.labelled:make_probe",),
    record_parts={"top_one": "harness.tools.labelled.part:TopOne", "score": "harness.tools.labelled.part:Score"},
    part_views={"top_one": "harness.tools.labelled.view:TOP_ONE", "score": "harness.tools.labelled.view:SCORE"},
    cache_kinds=(CacheKind("pictures", "labelled pictures as the inputs of a model"),),
)
SCORED, SCORE = "scored.npz", "score.json"
"""Labelled inputs and their labels, where a function scores the outputs, and the name and number of the oracle's."""


def make_probe(work: Work, prepared: Preparation, run: Run, step: Step) -> Probe | None:
    """Return what asks a program about labelled data; None of a case without, and of a quick look without a score."""
    from harness.compile.artifacts.artifact import LABELLED
    from harness.tools.labelled.probes import LabelledProbe, ScoreProbe

    if (work.answers.folder / LABELLED).exists():
        return LabelledProbe(work)
    return ScoreProbe(work) if (work.answers.folder / SCORED).exists() and not work.plan.budget.quick else None
