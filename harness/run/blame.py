"""Which operator TVM's importer gets wrong: the first whose result is off on LLVM as well.

Every tensor inside the network is computed twice, outside TVM and by LLVM. An operator whose inputs are right and whose
result is not is to blame.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.build.artifact import Answers, load_values
from harness.build.keys import llvm_values_job, values_job
from harness.models.onnx_read import load
from harness.models.outline import node_name
from harness.run.correctness import compare_answers, relative_tolerances

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.build.pool import Builder
    from harness.run.work import Work


def first_misread(work: Work, builder: Builder) -> str:
    """Return the operator, as `Resize 'shrink'`; empty if none is off by more than the network's outputs may be."""
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
            if name in right and name in theirs and _is_off(theirs[name], right[name], allowed):
                return f"{node.op_type} {node_name(node)!r}"
    return ""


def _is_off(theirs: Array, right: Array, allowed: float) -> bool:
    """Return whether a tensor is off by more than any output may be."""
    try:
        return not compare_answers([theirs], [right], allowed).right
    except ValueError:  # an infinity on purpose
        return False
