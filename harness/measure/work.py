"""Open the build of a case, and check its schedules.

The compiler lists the functions that took a tuned schedule. TVM might have done the same by itself, so their kernels
are compared with those of the default build, definition by definition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from device_runner.device import Array
from device_runner.failures import Failure, Unsupported
from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR, Precision
from harness.base.failures import CompileFailure, InputRefused
from harness.base.plan import Plan
from harness.base.tables import counted
from harness.compile.artifacts.artifact import (
    INPUTS,
    LEEWAY,
    OTHER_INPUTS,
    OTHER_OUTPUTS,
    OUTPUTS,
    RANGE,
    Answers,
    Artifact,
    Built,
    CompileResult,
    load_arrays,
)
from harness.compile.oracle.leeway import load_leeway
from harness.compile.paths.kernels import kernels
from harness.measure.correctness import Truth
from harness.measure.facts import ScheduleEffect
from harness.measure.probes.reference import ReferenceKernel
from harness.measure.tuning import CacheUse

T = TypeVar("T")
LARGEST_HALF = 65_504.0
"""The largest finite number of float16 (IEEE 754)."""


@dataclass(frozen=True)
class Work:
    """What was built for one case."""

    plan: Plan
    built: Built
    artifact: Artifact
    answers: Answers
    """The oracle's."""

    @cached_property
    def truth(self) -> Truth:
        """Return the truth of its answer, with the tolerance of the precision that the build computes in."""
        return self._truth_of(self.answers)

    def repeats(self) -> Iterator[Truth]:
        """Yield what answers to further draws of the inputs are judged by. Raises what finding one out raised."""
        for job in self.plan.repeats:
            yield self._truth_of(_expect(self.built[job.key], Answers))

    def _truth_of(self, answers: Answers) -> Truth:
        plan = self.plan
        allowed = limits(self.artifact.compiled, plan.case.precision, plan.relative_tolerance, plan.rounding_factor)
        return load_truth(answers.folder, *allowed)

    @cached_property
    def other(self) -> list[Array]:
        """The oracle's answer to other inputs; empty if it had none."""
        return load_arrays(self.answers.folder / OTHER_OUTPUTS)


@dataclass(frozen=True)
class Preparation:
    """Tuning and reference kernel of the measured session of a case."""

    cache: CacheUse
    reference: ReferenceKernel | None = None
    """The reference kernel, to be timed in the same session; None of a run that does not time, or if there is none."""


def open_work(plan: Plan, built: Built) -> Work:
    """Take what was built for a case. Raises Unsupported of one that was not built, and what building it raised."""
    if plan.unsupported:
        raise Unsupported(plan.unsupported)
    answers = built[plan.oracle.key]
    if isinstance(answers, InputRefused):
        raise answers  # inputs that nobody can compute are the first thing to correct, whatever a compiler says
    compiled = built[plan.compile.key]
    if isinstance(compiled, CompileFailure) and isinstance(answers, CompileFailure):
        compiled.hint = answers.hint  # an exporter may have written what is no network at all
    artifact = _expect(compiled, Artifact)
    return Work(plan, built, artifact, _expect(answers, Answers))


def limits(
    compiled: CompileResult, precision: Precision, relative_tolerance: float, rounding_factor: float
) -> tuple[float, float, Precision]:
    """Return the tolerance and the factor of rounding of what a build computes in, and that precision.

    A network may have numbers in half precision itself, and a case in half precision no kernel that computes in it.
    OpenCL ML computes in the precision of the tensors that it takes. A suite's own tolerance, with a factor 0, stays.
    """
    facts, asked = compiled.facts, precision is not Precision.FLOAT32
    half = bool(facts.get("half_kernels", asked) or facts.get("half_subgraphs", asked and facts.get("subgraphs")))
    half = half or any(dtype == Precision.FLOAT16 for _, _, dtype in compiled.inputs)
    computed = precision if half == asked else Precision.FLOAT16 if half else Precision.FLOAT32
    if rounding_factor and half != asked:
        relative_tolerance, rounding_factor = RELATIVE_TOLERANCE[computed], ROUNDING_FACTOR[computed]
    return relative_tolerance, rounding_factor, computed


def load_truth(answers: Path, relative_tolerance: float, rounding_factor: float, precision: str) -> Truth:
    """Return the truth in a folder of answers: the right answer, and how far off another may be."""
    return Truth(
        load_arrays(answers / INPUTS),
        load_arrays(answers / OUTPUTS),
        relative_tolerance,
        [output.leeway(rounding_factor, precision) for output in load_leeway(answers / LEEWAY)],
        *(load_arrays(file) if file.exists() else [] for file in (answers / OTHER_INPUTS, answers / OTHER_OUTPUTS)),
    )


def _expect(built: Artifact | Answers | Failure, kind: type[T]) -> T:
    if isinstance(built, Failure):
        raise built
    if not isinstance(built, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(built).__name__}")
    return built


def half_range(plan: Plan, built: Built) -> str:
    """Return why no answer in half precision could be right; empty if one could, or if it is not known."""
    measured = built.get(plan.range.key) if plan.range else None
    return beyond_half(measured.folder / RANGE) if isinstance(measured, Answers) else ""


_KERNEL = re.compile(r"_kernel(_\d+)?$")


def schedules_of(work: Work, tvm: str) -> ScheduleEffect:
    """Return what a plan's tuned schedules changed against the build with TVM's own, both made by the release `tvm`."""
    plan = work.plan
    assert plan.default_schedules
    default = work.built[plan.default_schedules.key]
    fields = schedule_fields(work.artifact, default, plan.schedules)
    return ScheduleEffect(fields, schedule_complaint(fields, default, tvm))


def schedule_fields(artifact: Artifact, untuned: object, sha256: str) -> dict[str, Any]:
    """Return a record's fields on schedules: which functions took one, whose kernels differ, which did not."""
    fields = artifact.compiled.schedules or {}
    mine, theirs = _definitions(artifact), _definitions(untuned) if isinstance(untuned, Artifact) else {}
    changed = [name for name in fields.get("took", ()) if name in theirs and mine.get(name) != theirs[name]]
    return {"sha256": sha256, **fields, "changed": changed}


def schedule_complaint(facts: Mapping[str, Any], untuned: object, tvm: str) -> str:
    """Return why a build with the release `tvm` does not count as one with tuned schedules; empty if it does."""
    complaint = _complaint(facts, untuned)
    ported = f" (found with TVM {facts['ported_from']}, built with {tvm})" if facts.get("ported_from") else ""
    return f"{complaint}{ported}" if complaint else ""


def _complaint(facts: Mapping[str, Any], untuned: object) -> str:
    took, refused = facts.get("took", ()), facts.get("refused", {})
    if not took and not refused:
        return "the file of schedules has none for this network on this path"
    if isinstance(untuned, Failure):
        return f"the build with TVM's own schedules, to compare with, failed: {untuned.message}"
    if not took:
        return f"no task of it took a schedule of the file: {next(iter(refused.values()))}"
    if not facts["changed"]:
        return f"{counted(len(took), 'task')} took a schedule of the file, and their kernels are the same as without"
    return ""


def schedule_summary(facts: Mapping[str, Any]) -> str:
    """Describe how much of a build uses the schedules."""
    took, refused, changed = len(facts.get("took", ())), len(facts.get("refused", {})), len(facts.get("changed", ()))
    tasks = took + refused + len(facts.get("without", ()))
    ported = f", found with TVM {facts['ported_from']}" if facts.get("ported_from") else ""
    return f"{took} of {tasks} tasks took a schedule of the file{ported}, the kernels of {changed} changed" + (
        f"; {refused} could not take theirs" if refused else ""
    )


def _definitions(artifact: Artifact) -> dict[str, set[str]]:
    """Return the kernels of each function, by what they do."""
    definitions: dict[str, set[str]] = {}
    for kernel in kernels(artifact.source):
        definitions.setdefault(_KERNEL.sub("", kernel.name), set()).add(kernel.code)
    return definitions


def beyond_half(file: Path) -> str:
    """Describe in one line why no half-precision answer can be right: the numbers exceed float16."""
    numbers = json.loads(file.read_text(encoding="utf-8"))
    if numbers["largest"] <= LARGEST_HALF:
        return ""
    return (
        f"the network leaves float16's range: {numbers['at']} reaches {numbers['largest']:.4g} in single precision, "
        f"and the largest float16 is {LARGEST_HALF:.0f}"
    )
