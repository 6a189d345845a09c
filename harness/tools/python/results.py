"""What `adreno_bench` returns: results and verdicts, which notebooks and data frames take as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from device_runner.names import suggestion
from harness.judge.report.exports import CaseExport, export_case
from harness.judge.report.table import results_table
from harness.judge.report.verdicts import ComparisonView
from harness.judge.sides import Sides, by_series, sides_of
from harness.measure.records.record import Record
from harness.measure.workbench import RunResults
from harness.tools.python import frames, notebook

if TYPE_CHECKING:
    import pandas


MOST_IDS = 12
"""Cases that an error names."""


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
        return frames.data_frame(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand a row for each case to `pyarrow.table()`, `polars.DataFrame()` and others by Arrow's C stream.

        Raises SetupMissing without pyarrow.
        """
        return frames.arrow_table(self).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.table() if self.records else "no results"

    def _repr_html_(self) -> str | None:
        """Return the matrix for a notebook; None without jinja2, and then it shows the table."""
        return notebook.matrix_html(self._builds)

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
    ids = [case.case for case in cases]
    more = [f"and {len(ids) - MOST_IDS} more"] if len(ids) > MOST_IDS else []
    return ", ".join([*ids[:MOST_IDS], *more])


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
        """Return the table for a notebook."""
        return notebook.verdicts_html(self.export, self.answer)
