"""Building and running operator cases: thousands of small libraries, in few sessions of the device.

One server process runs one library after the other; it is replaced as soon as one of them ends badly. What breaks in a
process that ran others before is run again in a fresh one, and that is what counts. So is a wrong answer, unless the
last library that was right in this process still is: then the process is sound, and a fresh one, which takes seconds,
would say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from device_runner.failures import Failure, PathFailure
from device_runner.registry import open_device
from harness.build.artifact import Answers, Artifact, Built
from harness.build.pool import Builder
from harness.cases.plan import no_half
from harness.cases.suite import Limits
from harness.ops.catalogue import INPUTS, OUTPUTS, Catalogue, catalogue, choose
from harness.ops.cells import Cell, Result, Results, Verdict, cells
from harness.probes.facts import Facts
from harness.run.correctness import Accuracy, Truth
from harness.run.decide import decide
from harness.run.outcome import Outcome
from harness.run.shared_session import SharedSession
from harness.run.support import lacks
from harness.workbench import make_ready

if TYPE_CHECKING:
    from pathlib import Path

    from device_runner.device import Device, Identity
    from harness.cases.case import Precision

LIMITS = Limits(build_s=120.0, build_memory_gb=8.0, run_s=60.0)
"""An operator takes a second; one that takes a minute hangs."""
PROGRAMS = 200
"""After so many a process is replaced, whatever they came to: each leaves a little behind."""
CHUNK = 48
"""Cells that are built while those before them run."""


@dataclass(frozen=True)
class CellResult:
    """One cell and what became of it."""

    cell: Cell
    result: Result
    own: bool
    """Whether the path did anything of its own, as far as it was built."""

    @property
    def verdict(self) -> Verdict:
        """The word for it."""
        return self.result.verdict(own=self.own)

    @property
    def plain(self) -> dict[str, Any]:
        """For a program, as JSON takes it."""
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
            "artifact": cell.compile.key,
        }


class Operators:
    """Runs cells on a device. A context manager: leaving it ends the session."""

    def __init__(self, device: Device, builder: Builder, results: Results, say: Callable[[str], None]) -> None:
        self._device = device
        self._builder = builder
        self._results = results
        self._say = say
        self._session = SharedSession(device, PROGRAMS, LIMITS.run_s)
        self._right: tuple[Cell, Artifact] | None = None
        """The last that was right in this session."""

    def __enter__(self) -> Operators:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.end()

    def run(self, catalogue: Catalogue, cells: Sequence[Cell]) -> Iterator[CellResult]:
        """What becomes of each cell, in their order. Raises DeviceFailure and RigFailure; what is done is kept."""
        self._right = None  # it may be of another catalogue
        chunks = [cells[start : start + CHUNK] for start in range(0, len(cells), CHUNK)]
        with ThreadPoolExecutor(1, thread_name_prefix="ahead") as beside:
            ahead: list[Future[Built]] = [beside.submit(self._build, chunk) for chunk in chunks]
            try:
                for number, (chunk, future) in enumerate(zip(chunks, ahead, strict=True), 1):
                    built = future.result()
                    yield from (self._one(catalogue, cell, built[cell.compile.key]) for cell in chunk)
                    self._say(f"{min(number * CHUNK, len(cells))} of {len(cells)} done")
            finally:
                for future in ahead:
                    future.cancel()

    def _build(self, chunk: Sequence[Cell]) -> Built:
        return self._builder.build(cell.compile for cell in chunk)

    def _one(self, catalogue: Catalogue, cell: Cell, built: Artifact | Answers | Failure) -> CellResult:
        if isinstance(built, Failure):
            return CellResult(cell, Result(Outcome(built.outcome), built.message), own=True)
        assert isinstance(built, Artifact)
        if why := _lacking(cell, built, self._device.identity):
            return CellResult(cell, Result(Outcome.UNSUPPORTED, why), _own(cell.path, built))
        facts = {
            "library": built.loadable.sha256,
            "data": cell.case.data_sha256,
            "tolerance": cell.relative_tolerance,
            "identity": self._device.identity.key,
            "runtime": self._device.identity.runtime,
        }
        result = self._results.find(facts)
        if result is None:
            result = self._results.keep(facts, self._judge(catalogue, cell, built), cell.title)
        return CellResult(cell, result, _own(cell.path, built))

    def _judge(self, catalogue: Catalogue, cell: Cell, artifact: Artifact) -> Result:
        self._session.reserve(1)
        fresh = self._session.programs == 0
        result = self._attempt(catalogue, cell, artifact)
        if result.outcome is Outcome.OK:
            self._right = (cell, artifact)
        elif not fresh and not (result.outcome is Outcome.WRONG_RESULT and self._sound(catalogue)):
            self._session.end()
            result = self._attempt(catalogue, cell, artifact)
        return result

    def _sound(self, catalogue: Catalogue) -> bool:
        """Whether what was right in this process still is."""
        if self._right is None or self._session.programs == 0:
            return False
        return self._attempt(catalogue, *self._right).outcome is Outcome.OK

    def _attempt(self, catalogue: Catalogue, cell: Cell, artifact: Artifact) -> Result:
        """Run a library once, in the session that there is. Raises whatever is not the path's fault."""
        inputs = catalogue.arrays(cell.case, INPUTS)
        expected = list(catalogue.arrays(cell.case, OUTPUTS).values())
        truth = Truth([inputs[name] for name, _, _ in artifact.compiled.inputs], expected, cell.relative_tolerance)
        facts = Facts()
        try:
            self._session.measure(artifact.loadable, truth, (), facts)
        except PathFailure as failure:
            facts.failure = failure
            self._session.end()
        decision, accuracy = decide(facts), facts.get(Accuracy)
        error = accuracy.max_rel_err if accuracy else float("inf")
        return Result(decision.outcome, decision.message, error if error < float("inf") else None)


def _lacking(cell: Cell, artifact: Artifact, identity: Identity) -> str:
    """What the device lacks for a cell; empty if it may be tried."""
    if cell.dtype.startswith("float16") and (why := no_half(identity)):
        return why
    return next((why for why, _ in lacks(artifact, identity)), "")


def _own(path: str, artifact: Artifact) -> bool:
    """Whether a path did anything that path `opencl` does not."""
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
    """Open a device and run the chosen cases on it. `modes` are of `as_shipped`. Raises UsageError, and what a device
    raises.
    """
    say("looking for the cases (the first time, they are generated, which takes a minute)")
    found = [catalogue(name, cache) for name in sets]
    chosen = choose([case for one in found for case in one.cases], globs)
    with (
        Builder(cache, LIMITS, forked=True) as builder,
        open_device(device, cache, say=say) as opened,
        Operators(opened, builder, Results(cache), say) as runner,
    ):
        make_ready(paths, cache)
        for one in found:
            mine = [case for case in chosen if case in one.cases]
            yield from runner.run(one, list(cells(one, mine, paths, opened.identity, precision=precision, modes=modes)))
