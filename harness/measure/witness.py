"""The second witness: the answer of LLVM behind TVM's importer, which shows whose fault a wrong answer is.

It runs only where an answer is wrong; for a right one it counts if its answer is in the store. If TVM's importer is to
blame, the judge and LLVM compute every tensor inside the network: the faulty operator has right inputs and a wrong
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.case import Precision
from harness.base.failures import OracleNotFinite
from harness.compile.artifacts.artifact import OUTPUTS, Answers, Artifact, load_arrays, load_values
from harness.compile.models.outline import node_name
from harness.measure.correctness import Truth, compare_answers, relative_tolerances
from harness.measure.facts import Accuracy, Answer, Facts, WitnessReport

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.base.plan import Job
    from harness.compile.artifacts.pool import Builder
    from harness.measure.work import Work


def hear_witness(work: Work, facts: Facts, builder: Builder | None) -> WitnessReport | None:
    """Return the witness's report on a judged answer.

    None if it did not run, has no answer, or was the judge itself.
    """
    from harness.compile.artifacts.keys import llvm_double_job, llvm_half_job

    answer, accuracy, job = facts.get(Answer), facts.get(Accuracy), work.plan.witness
    if not answer or not accuracy or not job or work.answers.unchecked:
        return None
    if accuracy.draws > 1 and not accuracy.right:  # the witness answered the first draw
        return None
    answers = _answers(work, job, builder, ask=not accuracy.right)
    if not isinstance(answers, Answers):
        return None
    report = compare_with_witness(answer.outputs, work.truth, answers)
    if report.blames_importer:
        return replace(report, right_in_double=bool(_is_right(work, llvm_double_job(work.plan.oracle), builder)))
    if accuracy.right or not report.with_judge or work.plan.case.precision is not Precision.FLOAT16:
        return report

    def right_in(precision: Precision) -> bool | None:
        return _is_right(work, llvm_half_job(job, precision), builder)

    wrong = right_in(Precision.FLOAT16) is False and right_in(Precision.FLOAT16_ACC32) is True
    return replace(report, wrong_in_half_sums=wrong)


def _is_right(work: Work, job: Job, builder: Builder | None) -> bool | None:
    """Return whether an answer of LLVM's is right: not if it leaves the range, and None if there is none."""
    answers = builder.build([job])[job.key] if builder else None
    if isinstance(answers, Answers):
        return work.truth.judge(load_arrays(answers.folder / OUTPUTS)).right
    return False if isinstance(answers, OracleNotFinite) else None


def compare_with_witness(outputs: Sequence[Array], truth: Truth, witness: Answers) -> WitnessReport:
    """Compare a witness's answers with the truth, and a path's answer with those."""
    theirs, allowed = load_arrays(witness.folder / OUTPUTS), (truth.relative_tolerance, truth.rounding)
    return WitnessReport(
        witness.judge, with_judge=truth.judge(theirs).right, with_path=compare_answers(outputs, theirs, *allowed).right
    )


def _answers(work: Work, job: Job, builder: Builder | None, *, ask: bool) -> Artifact | Answers | Exception | None:
    if job.key in work.built or builder is None:
        return work.built.get(job.key)
    return builder.build([job])[job.key] if ask else builder.find(job)


def first_misread(work: Work, builder: Builder) -> str:
    """Return the first operator that TVM's importer gets wrong, as `Resize 'shrink'`.

    Empty if none is off by more than the network's outputs may be.
    """
    from harness.compile.artifacts.keys import llvm_values_job, values_job
    from harness.compile.models.onnx_read import load

    oracle = work.plan.oracle
    jobs = values_job(oracle), llvm_values_job(oracle)
    built = builder.build(jobs)
    judge, llvm = (built[job.key] for job in jobs)
    if not isinstance(judge, Answers) or not isinstance(llvm, Answers):
        return ""
    right, theirs, truth = load_values(judge.folder), load_values(llvm.folder), work.truth
    allowed = max(relative_tolerances(len(truth.expected), truth.relative_tolerance, truth.rounding))
    for node in load(Path(oracle.payload["request"]["model_file"])).graph.node:
        for name in node.output:
            if name in right and name in theirs and not compare_answers([theirs[name]], [right[name]], allowed).right:
                return f"{node.op_type} {node_name(node)!r}"
    return ""
