"""Runs a case again and finds where its network goes off: as text for a person, and as plain values for a program.

With it: what a piece of the network was compiled to, and where the whole network has the same kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.base.model import OnnxModel
from harness.base.outcome import Outcome, without_findings
from harness.base.request import QuirkPolicy
from harness.base.tables import table
from harness.cli.record_filter import models_of
from harness.compile.models.named import named_models
from harness.compile.paths.kernels import Kernel, kernels
from harness.judge.report.screen import Screen
from harness.judge.report.sections import BuildKey
from harness.measure.records.record import Record
from harness.measure.workbench import Request
from harness.tools.explain.first_wrong import FirstWrong
from harness.tools.explain.kernel_files import kernel_files
from harness.tools.explain.locate import Divergence, locate
from harness.tools.explain.pieces import CuttableNetwork, NetworkOperator
from harness.tools.explain.trial import MODEL, VALUES, Finding, keep, open_trials
from harness.tools.shared.networks import without_programs


def newest_finding(records: Sequence[Record]) -> Record:
    """Return the latest record with a finding. Raises UsageError if there is none, or if they are of several cases."""
    cases = dict.fromkeys(record.case for record in records)
    if len(cases) > 1:
        raise UsageError(f"diverge takes one case, and {len(cases)} match", hint=f"name one: {next(iter(cases))}")
    findings = [record for record in records if _is_finding(record)]
    if not findings:
        what = f"{records[-1].case} is {records[-1].outcome.value}: there is no wrong operator to find"
        raise UsageError(what, hint="name a case that is wrong or broken")
    return max(findings, key=lambda record: record.started_at)


def _is_finding(record: Record) -> bool:
    return not without_findings([record.outcome])


def find_divergence(
    record: Record, suite: Path, models: Sequence[str | OnnxModel], device: str | None
) -> DivergenceReport:
    """Run the record's case again, with the same defects worked around, and find where it goes off.

    Its model is looked for among `models`, else among those that its run named, else in the suite.

    Raises UsageError if it is neither wrong nor broken now.
    """
    quirks = QuirkPolicy(as_shipped=True, with_quirks=tuple(record.quirks))
    models = models or models_of(record.model_options)
    if not models and not suite.exists() and record.model in named_models():
        models = [record.model]
    request = without_programs(Request.read(suite, [record.case], quirks, models=models))
    with Screen() as screen, open_trials(request, device or record.device, screen) as trials:
        whole, network = trials.whole(), trials.network
        if not _is_finding(whole):
            what = f"{record.case} is {whole.outcome.value} now: there is no wrong operator to find"
            raise UsageError(what, hint="`adreno-bench run` it again")

        divergence = locate(network, Finding.of(whole), trials.run, screen.say)
        smallest, same = divergence.smallest, record.artifact == whole.artifact
        if smallest is None:
            return DivergenceReport(whole, same, network, divergence, None, ())
        kernels = compiled_kernels(smallest.record, whole, request.cache)
        return DivergenceReport(whole, same, network, divergence, keep(smallest, request.cache), kernels)


_NAME = re.compile(r"(?:fused_)?(\w+?)_kernel(?:_(\d+))?")
"""How TVM names a kernel: after the operators that it computes, and which of several for them it is."""


@dataclass(frozen=True)
class PieceKernel:
    """One kernel of a piece."""

    file: Path
    same: str = ""
    """The kernel of the whole network that has the same code; empty if none has."""
    alike: tuple[str, ...] = ()
    """Else those whose names begin with the same operators: the whole network may fuse them with more."""


def compiled_kernels(piece: Record, whole: Record, cache: Path) -> list[PieceKernel]:
    """Return the kernels of a piece, each with those of the whole network that are like it."""
    there = {kernel.code: kernel.name for _, kernel in _kernels(whole, cache)}

    def compared(file: Path, kernel: Kernel) -> PieceKernel:
        same = there.get(kernel.code, "")
        return PieceKernel(file, same, () if same else begin_alike(kernel.name, there.values()))

    return [compared(file, kernel) for file, kernel in _kernels(piece, cache)]


def begin_alike(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the kernels whose names begin with the operators of another's. TVM numbers equal names: `add`, `add1`."""
    operators, place = _operators(name)
    named = ((other, *_operators(other)) for other in others)
    return tuple(other for other, begin, number in named if number == place and begin.startswith(operators))


def _operators(name: str) -> tuple[str, str]:
    match = _NAME.fullmatch(name)
    operators, place = (match[1], match[2] or "") if match else (name, "")
    return re.sub(r"\d+(?=_|$)", "", operators) + "_", place


def _kernels(record: Record, cache: Path) -> list[tuple[Path, Kernel]]:
    files = kernel_files(cache, record.artifact) or ()
    return [(file, kernel) for file in files for kernel in kernels(file.read_text(encoding="utf-8"))]


MOST_NAMES = 3
"""Most names of possible kernels to print; more are only counted."""


@dataclass(frozen=True)
class DivergenceReport:
    """All that is known of where one case's network goes off."""

    whole: Record
    """Record of the whole network, run again."""
    same_artifact: bool
    """Whether that is what the record that was asked about had run."""
    network: CuttableNetwork
    divergence: Divergence
    folder: Path | None
    """Folder of the smallest network that shows it, and of its inputs."""
    kernels: Sequence[PieceKernel]

    def text(self) -> str:
        """Return the report as text."""
        return "\n".join(self._lines())

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "case": self.whole.case,
            "outcome": self.whole.outcome.value,
            "message": self.whole.message,
            "same_artifact": self.same_artifact,
            "first": [self._plain(operator) for operator in self.divergence.candidates],
            "beginnings": [
                {"operators": len(trial.piece.operators), **_accuracy_fields(trial.record)}
                for trial in self.divergence.beginnings
            ],
            "around": [
                {"operators": [operator.number for operator in trial.piece.operators], **_accuracy_fields(trial.record)}
                for trial in self.divergence.around
            ],
            "reproducer": str(self.folder) if self.folder else None,
            "kernels": [
                {"file": str(kernel.file), "same_code": kernel.same, "named_alike": kernel.alike}
                for kernel in self.kernels
            ],
        }

    def first_wrong(self) -> FirstWrong:
        """Return what the page of a run says of it."""
        sentences = (*self._first_lines(), *self._around_lines(), *self._half_lines())
        return FirstWrong(build=BuildKey.of(self.whole), sentences=sentences)

    def _lines(self) -> Iterator[str]:
        yield f"{self.whole.case}: {self.whole.outcome.value}: {self.whole.message}"
        if not self.same_artifact:
            yield "(its model, TVM or this harness changed since the record was written; this is how it is now)"
        yield ""
        yield self._table()
        yield ""
        yield from self._first_lines()
        yield from self._around_lines()
        yield from self._half_lines()
        if self.folder:
            yield f"A network of its own that shows it: {self.folder}/{MODEL}, on the inputs in {VALUES} beside it."
        if self.kernels:
            yield f"Its kernels are in {self.kernels[0].file.parent}:"
            yield ""
            rows = [(kernel.file.name, _format_match(kernel)) for kernel in self.kernels]
            yield table(rows, ("kernel", "in the whole network"), prose=("in the whole network",))

    def _table(self) -> str:
        """One row for each beginning of the network that was tried, and the last for the whole."""
        rows = [self._row(trial.piece.operators[-1], trial.record) for trial in self.divergence.beginnings]
        rows.append(self._row(self.network.operators[-1], self.whole))
        headers = ("up to", "operator", "output", "error / tolerance", "cosine", "outcome")
        return table(rows, headers, right=("error / tolerance", "cosine"), spare=("output",))

    def _row(self, operator: NetworkOperator, record: Record) -> tuple[str, ...]:
        accuracy = record.accuracy
        return (
            f"{operator.number} of {len(self.network.operators)}",
            str(operator),
            self._shape(operator.makes[0]),
            f"{accuracy.max_abs_err:.1e} / {accuracy.tolerance:.1e}" if accuracy else "-",
            f"{accuracy.cosine:.4f}" if accuracy else "-",
            record.outcome.value,
        )

    def _first_lines(self) -> Iterator[str]:
        """Which operator it is, and what it reads."""
        wrong = self.divergence.finding.outcome is Outcome.WRONG_RESULT
        what = "whose output is off" if wrong else f"with which it is {self.divergence.finding.outcome.value}"
        first, candidates = self.divergence.first, self.divergence.candidates
        if len(candidates) == 1:
            yield f"The first operator {what} is {first}, number {first.number} of {len(self.network.operators)}."
        else:
            numbers = f"{candidates[0].number} to {first.number} of {len(self.network.operators)}"
            yield f"The first operator {what} is one of numbers {numbers}: the cuts between them have another outcome."
        reads = ", ".join(f"{tensor} {self._shape(tensor)}" for tensor in first.reads)
        yield f"{first} reads {reads}."

    def _around_lines(self) -> Iterator[str]:
        """Yield whether it is off by itself. A cut that hides the defect is said."""
        alone, smallest, outcome = (
            self.divergence.around[0],
            self.divergence.smallest,
            self.divergence.finding.outcome.value,
        )
        if smallest is alone:
            yield f"Alone, on the oracle's inputs, it is {outcome}, too."
            return
        what = "another failure hides the defect" if _is_finding(alone.record) else "the defect is gone"
        yield f"Alone, on the oracle's inputs, it is {alone.record.outcome.value}: with this cut {what}."
        if smallest:
            others = ", ".join(
                str(operator) for operator in smallest.piece.operators if operator != self.divergence.first
            )
            yield f"Compiled together with {others} it is {outcome}: fusion matters."
            return
        most = max(len(trial.piece.operators) for trial in self.divergence.around)
        yield f"No piece around it, of up to {most} operators, is {outcome}: fusion or memory planning matters."
        yield f"`adreno-bench kernels {self.whole.case}` tells where the kernels of the whole network lie."

    def _half_lines(self) -> Iterator[str]:
        """Yield which constants of the smallest network, or of the operator, half precision does not hold."""
        if self.whole.precision == Precision.FLOAT32:
            return
        smallest = self.divergence.smallest
        operators = smallest.piece.operators if smallest else self.divergence.candidates
        for operator, number, half in self.network.lost_in_half(operators):
            yield f"Half precision makes {half:g} of the constant {number:g} that {operator} reads."

    def _plain(self, operator: NetworkOperator) -> dict[str, Any]:
        reads = {tensor: self.network.shape(tensor) for tensor in operator.reads}
        return {"number": operator.number, "operator": operator.kind, "name": operator.name, "reads": reads}

    def _shape(self, tensor: str) -> str:
        shape = self.network.shape(tensor)
        return "x".join(map(str, shape)) or "scalar" if shape is not None else "-"


def _format_match(kernel: PieceKernel) -> str:
    if kernel.same:
        return f"{kernel.same} has the same code"
    if len(kernel.alike) > MOST_NAMES:
        return f"by its name, one of {len(kernel.alike)}"
    return f"by its name, perhaps {' or '.join(kernel.alike)}" if kernel.alike else "none is like it"


def _accuracy_fields(record: Record) -> dict[str, Any]:
    figures = {name: getattr(record.accuracy, name, None) for name in ("max_abs_err", "tolerance", "cosine")}
    return {"outcome": record.outcome.value, **figures}
