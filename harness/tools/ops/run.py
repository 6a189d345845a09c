"""Building and running operator cases: thousands of small libraries, in few sessions of the device.

One server process runs one library after the other; it is replaced as soon as one of them ends badly. What breaks in a
process that ran others before is run again in a fresh one, and that is what counts. So is a wrong answer, unless the
last library that was right in this process still is: then the process is sound, and a fresh one, which takes seconds,
would say the same.

An answer is right if it is the judge's (`harness.compile.oracle`). Where no judge has one, it is held to the answer
that came with the case. Where it is that and not the judge's, the judge is off: two of those who know ONNX are not of
one mind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from device_runner.device import Device, Identity
from device_runner.failures import Failure, PathFailure
from device_runner.registry import open_device
from harness.base.case import Precision
from harness.base.outcome import Outcome
from harness.base.plan import no_half
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Answers, Artifact, Built
from harness.compile.artifacts.pool import Builder
from harness.measure.correctness import Truth, compare_answers
from harness.measure.facts import Answer, Facts
from harness.measure.support import lacks
from harness.measure.witness import compare_with_witness
from harness.measure.work import load_truth
from harness.measure.workbench import make_ready, opening
from harness.tools.ops.catalogue import INPUTS, OUTPUTS, Catalogue, catalogue, choose, is_generated
from harness.tools.ops.cells import Cell, CellStore, CellVerdict, Result, cells
from harness.tools.shared.shared_session import SharedSession

LIMITS = Limits(build_s=120.0, build_memory_gb=8.0, run_s=60.0)
"""An operator takes a second; one that takes a minute hangs."""
PROGRAMS = 200
"""Number of programs after which a process is replaced: each leaves a little memory behind."""
CHUNK = 48
"""Cells that are built while those before them run."""
OWN_ANSWER = "the case's own answer"
"""Judge: ONNX's authors for a node test, their reference implementation for the sweep."""


@dataclass(frozen=True)
class CellResult:
    """One cell and its result."""

    cell: Cell
    result: Result
    own: bool
    """Whether the path did anything of its own, as far as it was built."""

    @property
    def verdict(self) -> CellVerdict:
        """The word for it."""
        return self.result.verdict(own=self.own)

    @property
    def plain(self) -> dict[str, Any]:
        """The result as JSON values."""
        cell = self.cell
        return {
            "name": cell.case.name,
            "operator": cell.case.operator,
            "set": cell.case.set,
            "dtype": cell.dtype,
            "path": cell.path,
            "as_shipped": cell.as_shipped,
            "verdict": self.verdict.value,
            "outcome": self.result.outcome.value,
            "message": self.result.message,
            "max_rel_err": self.result.max_rel_err,
            "owner": self.result.owner.value,
            "judge": self.result.judge,
            "artifact": cell.compile.key,
        }


class Operators(SharedSession):
    """Runs cells in one session of the device, for as long as nothing goes wrong."""

    def __init__(self, device: Device, builder: Builder, results: CellStore, say: Callable[[str], None]) -> None:
        super().__init__(device, PROGRAMS, LIMITS.run_s)
        self._builder, self._results, self._say = builder, results, say
        self._right: _Trial | None = None
        """The last that was right in this session."""

    def run(self, catalogue: Catalogue, cells: Sequence[Cell]) -> Iterator[CellResult]:
        """Yield the result of each cell, in their order. Raises DeviceFailure and RigFailure; what is done is kept."""
        chunks = [cells[start : start + CHUNK] for start in range(0, len(cells), CHUNK)]
        with ThreadPoolExecutor(1, thread_name_prefix="ahead") as pool:
            futures: list[Future[Built]] = [pool.submit(self._build, chunk) for chunk in chunks]
            try:
                for number, (chunk, future) in enumerate(zip(chunks, futures, strict=True), 1):
                    built = future.result()
                    yield from (self._one(catalogue, cell, built) for cell in chunk)
                    self._say(f"{min(number * CHUNK, len(cells))} of {len(cells)} done")
            finally:
                for future in futures:
                    future.cancel()

    def _build(self, chunk: Sequence[Cell]) -> Built:
        return self._builder.build(job for cell in chunk for job in (cell.compile, cell.oracle))

    def _one(self, catalogue: Catalogue, cell: Cell, built: Built) -> CellResult:
        artifact = built[cell.compile.key]
        if isinstance(artifact, Failure):
            return CellResult(cell, Result.of(Facts(artifact)), own=True)
        assert isinstance(artifact, Artifact)
        own = _own(cell.path, artifact)
        if why := _lacking(cell, artifact, self._device.identity):
            return CellResult(cell, Result(Outcome.UNSUPPORTED, why), own)
        facts = {
            "library": artifact.loadable.sha256,
            "data": cell.case.data_sha256,
            "truth": cell.oracle.key,
            "tolerance": [cell.relative_tolerance, cell.rounding_factor],
            "identity": self._device.identity.key,
            "runtime": self._device.identity.runtime,
        }
        result = self._results.find(facts)
        if result is None:
            trial = _Trial(cell, artifact, *_verdict_on(catalogue, cell, built[cell.oracle.key]))
            result = self._results.keep(facts, self._judge(trial), cell.title)
        return CellResult(cell, result, own)

    def _judge(self, trial: _Trial) -> Result:
        self.reserve(1)
        fresh = self.programs == 0
        facts = self._attempt(trial)
        outcome = trial.result(facts).outcome
        if outcome is Outcome.OK:
            self._right = trial
        elif not fresh and not (outcome is Outcome.WRONG_RESULT and self._sound()):
            self.end()
            facts = self._attempt(trial)
        self._hear_witness(trial, facts)
        return trial.result(facts)

    def _sound(self) -> bool:
        """Return whether what was right in this process still is."""
        if self._right is None or self.programs == 0:
            return False
        return self._right.result(self._attempt(self._right)).outcome is Outcome.OK

    def _attempt(self, trial: _Trial) -> Facts:
        """Run a library once, in the session that there is. Raises whatever is not the path's fault."""
        facts = Facts()
        try:
            self.measure(trial.artifact.loadable, trial.truth, (), facts)
        except PathFailure as failure:
            facts.failure = failure
            self.end()
        return facts

    def _hear_witness(self, trial: _Trial, facts: Facts) -> None:
        """Ask LLVM about a wrong answer."""
        if trial.result(facts).outcome is not Outcome.WRONG_RESULT or not (answer := facts.get(Answer)):
            return
        job = trial.cell.witness
        answers = self._builder.build([job])[job.key]
        if isinstance(answers, Answers):
            facts.add(compare_with_witness(answer.outputs, trial.truth, answers))


@dataclass(frozen=True)
class _Trial:
    """A cell that is built, with what it is held to."""

    cell: Cell
    artifact: Artifact
    truth: Truth
    judge: str
    own: Truth
    """The answer that came with the case."""

    def result(self, facts: Facts) -> Result:
        """Return what the facts mean."""
        result = Result.of(facts, judge=self.judge)
        answer, own = facts.get(Answer), self.own
        if result.outcome is not Outcome.WRONG_RESULT or not answer:
            return result
        if not compare_answers(answer.outputs, own.expected, own.relative_tolerance, own.rounding).right:
            return result
        message = f"{self.judge} disagrees with {OWN_ANSWER}: {result.message}"
        return Result(Outcome.OK, message, result.max_rel_err, judge=OWN_ANSWER)


def _verdict_on(catalogue: Catalogue, cell: Cell, answers: Artifact | Answers | Failure) -> tuple[Truth, str, Truth]:
    """Return the judge's answer, or the case's own where no judge has one; who gave it; and the case's own."""
    inputs, expected = catalogue.arrays(cell.case, INPUTS), list(catalogue.arrays(cell.case, OUTPUTS).values())
    if not isinstance(answers, Answers):
        own = Truth(list(inputs.values()), expected, cell.relative_tolerance)
        return own, OWN_ANSWER, own
    truth = load_truth(answers.folder, cell.relative_tolerance, cell.rounding_factor, cell.dtype)
    return truth, answers.judge, replace(truth, expected=expected)


def _lacking(cell: Cell, artifact: Artifact, identity: Identity) -> str:
    """Return what the device lacks for a cell; empty if it may be tried."""
    if cell.dtype.startswith("float16") and (why := no_half(identity)):
        return why
    return next((why for why, _ in lacks(artifact, identity)), "")


def _own(path: str, artifact: Artifact) -> bool:
    """Return whether a path did anything that path `opencl` does not."""
    if path == "texture":
        return artifact.compiled.facts.get("image_kernels", 0) > 0
    if path == "clml":
        return bool((artifact.compiled.offload or {}).get("subgraphs"))
    return True


def operators(
    sets: Sequence[str],
    globs: Sequence[str] | None,
    paths: Sequence[str],
    modes: Sequence[bool],
    precision: Precision,
    device: str,
    cache: Path,
    say: Callable[[str], None],
) -> Iterator[CellResult]:
    """Open a device and run the chosen cases. `modes` are of `as_shipped`. Raises UsageError, and device failures."""
    if new := [name for name in sets if not is_generated(name, cache)]:
        say(f"generating the cases of {', '.join(new)}, once, which takes a minute")
    catalogues = [catalogue(name, cache) for name in sets]
    chosen = choose([case for each in catalogues for case in each.cases], globs)
    if not globs:
        names, builds = {case.operator for case in chosen}, len(chosen) * len(paths) * len(modes)
        say(
            f"{len(names)} operators in {len(chosen)} cases, {builds} builds; `adreno-bench ops --op 'conv*'` runs some"
        )
    say(opening([device], cache))
    with (
        Builder(cache, LIMITS) as builder,
        open_device(device, cache, say=say) as opened,
        Operators(opened, builder, CellStore(cache), say) as runner,
    ):
        make_ready(paths, cache)
        for each in catalogues:
            mine = [case for case in chosen if case in each.cases]
            yield from runner.run(
                each, list(cells(each, mine, paths, opened.identity, precision=precision, modes=modes))
            )
