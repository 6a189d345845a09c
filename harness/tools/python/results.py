"""What `adreno_bench` returns: results and verdicts, which notebooks and data frames can show, and libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from device_runner.failures import Failure, SetupMissing
from device_runner.names import suggestion
from harness.base.outcome import Outcome
from harness.base.tables import listed
from harness.compile.artifacts.artifact import Artifact
from harness.judge.report.exports import CaseExport, export_case
from harness.judge.report.matrix import entries_of, matrices_of
from harness.judge.report.page import environment
from harness.judge.report.suite_page import conclusions_of
from harness.judge.report.table import results_table
from harness.judge.report.words import latency, percent
from harness.judge.sides import Sides, by_series, sides_of
from harness.measure.records.record import Record
from harness.measure.workbench import PlannedRequest, RunResults
from harness.tools.shared.comparison_view import ComparisonView

if TYPE_CHECKING:
    import pandas


MOST_IDS = 12
"""Cases that an error names."""
HEADERS = ("case", "verdict", "base", "head", "change")
"""Of the verdicts in a notebook."""


@dataclass(frozen=True, repr=False)
class Results(RunResults):
    """Results of cases: what `run` measured, or what `load` read.

    `results["net", "texture"]` is the latest result of a case; further words narrow it to a precision and a tuning.
    A notebook shows the matrix of models and paths. pandas, polars and pyarrow take the cases as a table.
    """

    def __len__(self) -> int:
        return len(self._newest)

    def __iter__(self) -> Iterator[CaseExport]:
        return map(export_case, self._newest)

    def __contains__(self, case: object) -> bool:
        """Return whether a case is among them: a result, or words that are an index."""
        if isinstance(case, CaseExport):
            return case in list(self)
        try:
            return bool(self[case])  # type: ignore[index]
        except (KeyError, TypeError):
            return False

    def __getitem__(self, words: str | Sequence[str]) -> CaseExport:
        """Return the latest result of a case, by its id or by words of it. Raises KeyError if not exactly one has them.

        Args:
            words: `"net-texture-float32-untuned"`, or `"net", "texture"` and, where that is not enough, the precision
                and the tuning.
        """
        asked = [words] if isinstance(words, str) else words
        if not isinstance(asked, list | tuple) or not all(isinstance(word, str) for word in asked):
            words_of_one = '", "'.join(next((case.case.split("-")[:2] for case in self), ["net", "opencl"]))
            raise TypeError(f'a case has words and no number: write results["{words_of_one}"], or list(results)[0]')
        fitting = [case for case in self if set(asked) <= _words_of(case)]
        if len(fitting) != 1:
            raise KeyError(self._ambiguity(asked, fitting))
        return fitting[0]

    def table(self) -> str:
        """Return the table that `adreno-bench run` and `adreno-bench show` print."""
        return results_table(self._newest)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each case. Raises SetupMissing without pandas."""
        try:
            import pandas
        except ImportError:
            raise SetupMissing("pandas is not installed", hint="pip install 'adreno-bench[pandas]'") from None
        return pandas.DataFrame([case.plain() for case in self], columns=list(CaseExport.model_fields))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand a row for each case to `pyarrow.table()`, `polars.DataFrame()` and others by Arrow's C stream.

        Raises SetupMissing without pyarrow.
        """
        try:
            import pyarrow
        except ImportError:
            raise SetupMissing("pyarrow is not installed", hint="pip install 'adreno-bench[records]'") from None
        columns = [(name, _arrow_type(field.annotation, pyarrow)) for name, field in CaseExport.model_fields.items()]
        table = pyarrow.Table.from_pylist([case.plain() for case in self], pyarrow.schema(columns))
        return table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.table() if self.records else "no results"

    def _repr_html_(self) -> str | None:
        """Return the matrix for a notebook; None without jinja2, and then it shows the table."""
        try:
            macros: Any = environment().get_template("matrix.html.j2").module
        except SetupMissing:
            return None
        return str(macros.notebook(matrices_of(entries_of(self._builds)), conclusions_of))

    def _ambiguity(self, asked: Sequence[str], fitting: Sequence[CaseExport]) -> str:
        """Return why words name no case or several, and what to write instead."""
        if fitting:
            which = f" have {' and '.join(asked)}" if asked else ""
            return f"{len(fitting)} cases{which}: add a word of {_ids(fitting)}"
        words = set().union(*map(_words_of, self))
        if alien := [word for word in asked if word not in words]:
            return f"no case has {alien[0]!r}: {suggestion(alien[0], sorted(words), choices=(_ids(self),))}"
        return f"no case has {' and '.join(asked)}: known are {_ids(self)}"

    @property
    def sides(self) -> Sides:
        """What they say of each series, for a comparison."""
        return sides_of(self.records)

    @property
    def _builds(self) -> list[list[Record]]:
        return list(by_series(self.records).values())

    @cached_property
    def _newest(self) -> list[Record]:
        return [build[-1] for build in self._builds]


def _words_of(case: CaseExport) -> set[str]:
    return {case.case, *case.case.split("-")}


def _ids(cases: Iterable[CaseExport]) -> str:
    return listed((case.case for case in cases), MOST_IDS)


@dataclass(frozen=True, repr=False)
class Verdicts(ComparisonView):
    """Verdicts on cases: what `compare` returns. A notebook shows the answer and a row for each case."""

    @classmethod
    def of(cls, view: ComparisonView) -> Verdicts:
        """Return what a command shows, for Python."""
        return cls(view.result, view.rules, view.remark, view.answer)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """Return the answer for a notebook, and a row for each case, the worst first."""
        from tabulate import tabulate

        rows = [
            (
                case.case,
                case.verdict.value,
                *("-" if side is None else latency(side.latency_ms) for side in (case.base, case.head)),
                percent(case.relative),
            )
            for case in self.export.worst_first
        ]
        return f"<p>{escape(self.answer)}</p>" + tabulate(rows, HEADERS, tablefmt="html", disable_numparse=True)


def _arrow_type(annotation: Any, pyarrow: Any) -> Any:
    """Return Arrow's type of a field of `CaseExport`: every column has one, whatever its values."""
    if get_origin(annotation) is list:
        return pyarrow.list_(_arrow_type(get_args(annotation)[0], pyarrow))
    kinds = get_args(annotation) or (annotation,)
    types = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()}
    return next((types[kind] for kind in kinds if kind in types), pyarrow.string())


@dataclass(frozen=True)
class Library:
    """A case and its compiled library.

    TVM's runtime runs it: `relax.VirtualMachine(tvm.runtime.load_module(str(file)), [tvm.device("opencl")] * devices)`.
    """

    case: str
    """Id of the case."""
    file: Path | None
    """Shared library with weights and kernels; None if the case does not compile."""
    devices: int
    """How often TVM's virtual machine wants the OpenCL device: once for each kind of its memory."""
    quirks: tuple[str, ...]
    """Defects of TVM that are worked around in it."""
    outcome: str
    """`ok`, or why there is no library: `compile-error` and others."""
    message: str = ""
    """What the compiler said, if there is none."""


def libraries_of(bench: PlannedRequest) -> Iterator[Library]:
    """Build the plans, and yield what each became."""
    built = bench.builder.build([plan.compile for plan in bench.plans])
    for plan in bench.plans:
        result, quirks = built[plan.compile.key], tuple(plan.quirks)
        if isinstance(result, Artifact):
            loadable = result.loadable
            yield Library(plan.case.id, loadable.library, loadable.vdevices, quirks, Outcome.OK.value)
        elif isinstance(result, Failure):
            yield Library(plan.case.id, None, 0, quirks, result.outcome, result.message)
