"""The second witness: what LLVM behind TVM's importer says of an answer, which tells whose fault a wrong one is.

It is asked where an answer is wrong. Where one is right it is only heard if its answer is in the store already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.build.artifact import OUTPUTS, Answers, load_arrays
from harness.probes.facts import Answer, Facts
from harness.run.correctness import Accuracy, compare_answers

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.build.artifact import Artifact
    from harness.build.pool import Builder
    from harness.cases.plan import Job
    from harness.run.correctness import Truth
    from harness.run.work import Work


@dataclass(frozen=True)
class WitnessReport:
    """What the second witness says."""

    name: str
    """Program and version: `TVM 0.27.0.post1 on LLVM`."""
    with_judge: bool
    """Whether its answer is right."""
    with_path: bool
    """Whether its answer is the path's, right or wrong."""
    first: str = ""
    """The first operator that it, and so TVM's importer, gets wrong; empty if that was not looked for or found."""

    @property
    def blames_importer(self) -> bool:
        """Whether what it shares with the path, which is TVM's importer above all, has the fault of a wrong answer."""
        return self.with_path and not self.with_judge


def hear_witness(work: Work, facts: Facts, builder: Builder | None) -> WitnessReport | None:
    """Return what the witness says of a judged answer.

    None if it was not asked, has no answer, or was the judge itself.
    """
    answer, accuracy, job = facts.get(Answer), facts.get(Accuracy), work.plan.witness
    if not answer or not accuracy or not job or work.unchecked:
        return None
    found = _answers(work, job, builder, ask=not accuracy.right)
    if not isinstance(found, Answers):
        return None
    return compare_with_witness(answer.outputs, work.truth, found)


def compare_with_witness(outputs: Sequence[Array], truth: Truth, witness: Answers) -> WitnessReport:
    """Hold a witness's answers to the truth, and a path's answer to those."""
    theirs, allowed = load_arrays(witness.folder / OUTPUTS), (truth.relative_tolerance, truth.rounding)
    return WitnessReport(
        witness.judge,
        with_judge=compare_answers(theirs, truth.expected, *allowed).right,
        with_path=compare_answers(outputs, theirs, *allowed).right,
    )


def _answers(work: Work, job: Job, builder: Builder | None, *, ask: bool) -> Artifact | Answers | Exception | None:
    if job.key in work.built or builder is None:
        return work.built.get(job.key)
    return builder.build([job])[job.key] if ask else builder.find(job)
