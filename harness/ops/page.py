"""The operators as a table for a terminal, and as a page of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from device_runner.failures import SetupMissing
from harness.ops.plan import MODES
from harness.ops.result import Verdict
from harness.tables import markdown_table, table

Plain = Mapping[str, Any]
"""One cell, as `harness.ops.run.Found.plain` has it, with `tvm`, the release that compiled it."""

MARKS = {
    Verdict.RIGHT: "✓",
    Verdict.NOT_OFFLOADED: "=",
    Verdict.UNSUPPORTED: "○",
    Verdict.WRONG: "✗",
    Verdict.NOT_BUILT: "■",
    Verdict.CRASH: "†",
    Verdict.NOT_RUN: "?",
}
LEGEND = (
    "cases that are ✓ right, = right by the code of path opencl (nothing in an image, nothing given to CLML), "
    "✗ wrong, ■ do not build, † crash, ○ build and cannot run on this device, ? could not be run"
)
BAD = (Verdict.WRONG, Verdict.NOT_BUILT, Verdict.CRASH)
LONGEST_WHY = 160


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    tvm: str
    path: str
    as_shipped: bool

    @classmethod
    def of(cls, cell: Plain) -> Column:
        """The column that a cell stands in."""
        return cls(cell["tvm"], cell["path"], cell["as_shipped"])


class Coverage:
    """Cells, counted for people."""

    def __init__(self, cells: Sequence[Plain]) -> None:
        self.cells = cells
        self.columns = list(dict.fromkeys(map(Column.of, cells)))
        self._several = len({column.tvm for column in self.columns}) > 1

    def heading(self, column: Column) -> str:
        """What stands above a column; the release only where there are several."""
        release = f"{column.tvm} " if self._several else ""
        return f"{release}{column.path}, {MODES[column.as_shipped]}"

    def rows(self) -> list[tuple[str, ...]]:
        """One for each operator and number format, and last the sum."""
        counted: dict[tuple[str, str], dict[Column, Counter[Verdict]]] = {}
        total: dict[Column, Counter[Verdict]] = {column: Counter() for column in self.columns}
        for cell in self.cells:
            row = counted.setdefault((cell["operator"], cell["dtype"]), {})
            verdict, column = Verdict(cell["verdict"]), Column.of(cell)
            row.setdefault(column, Counter())[verdict] += 1
            total[column][verdict] += 1
        listed = [(*name, *self._marks(row)) for name, row in sorted(counted.items())]
        return [*listed, ("all", "", *self._marks(total))]

    def _marks(self, row: Mapping[Column, Counter[Verdict]]) -> Iterator[str]:
        for column in self.columns:
            found = row.get(column, Counter())
            yield " ".join(f"{mark}{found[verdict]}" for verdict, mark in MARKS.items() if found[verdict]) or "-"

    def findings(self) -> list[tuple[str, ...]]:
        """What is not right, grouped by what is said of it: verdict, column, how many cases, which, why."""
        groups: dict[tuple[Verdict, Column, str], list[Plain]] = {}
        for cell in self.cells:
            verdict = Verdict(cell["verdict"])
            if verdict in BAD:
                about = cell["operator"] if verdict is Verdict.WRONG else _pattern(cell["message"])
                groups.setdefault((verdict, Column.of(cell), about), []).append(cell)
        order = sorted(groups.items(), key=lambda item: (BAD.index(item[0][0]), self.columns.index(item[0][1])))
        return [
            (verdict.value, self.heading(column), str(len(cells)), _names(cells), _why(cells[0]["message"]))
            for (verdict, column, _), cells in order
        ]

    HEADERS = ("operator", "dtype")
    FINDINGS = ("verdict", "path", "cases", "such as", "why")

    def text(self) -> str:
        """For a terminal."""
        headers = (*self.HEADERS, *map(self.heading, self.columns))
        parts = [table(self.rows(), headers, alike=("dtype",)), LEGEND]
        if found := self.findings():
            parts.append(table(found, self.FINDINGS, prose=("such as", "why"), right=("cases",)))
        return "\n\n".join(parts)

    def markdown(self) -> str:
        """For a page that GitHub draws."""
        headers = (*self.HEADERS, *map(self.heading, self.columns))
        parts = [LEGEND, markdown_table(self.rows(), headers)]
        if found := self.findings():
            parts.append(markdown_table([[cell.replace("|", "\\|") for cell in row] for row in found], self.FINDINGS))
        return "\n\n".join(parts)

    def html(self, facts: Mapping[str, str]) -> str:
        """A page that needs nothing else. `facts` say of what release and device it is. Raises SetupMissing."""
        try:
            from jinja2 import Environment, PackageLoader, StrictUndefined
        except ImportError:
            raise SetupMissing("jinja2 is not installed", hint="pip install 'adreno-bench[history]'") from None
        environment = Environment(
            loader=PackageLoader("harness.ops"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        return environment.get_template("operators.html.j2").render(
            facts=facts,
            legend=LEGEND,
            headers=(*self.HEADERS, *map(self.heading, self.columns)),
            rows=self.rows(),
            finding_headers=self.FINDINGS,
            findings=self.findings(),
        )


def _names(cells: Sequence[Plain]) -> str:
    operators = dict.fromkeys(cell["operator"] for cell in cells)
    if len(operators) == 1:
        return _first(cell["name"] for cell in cells)
    return _first(operators)


def _first(names: Iterable[str], most: int = 4) -> str:
    listed = list(dict.fromkeys(names))
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _pattern(message: str) -> str:
    """A message without what differs from case to case: numbers, and what is in quotation marks."""
    return re.sub(r"\d+|'[^']*'|\"[^\"]*\"|\bon [^:]+(?=:)", "#", message)[:LONGEST_WHY]


def _why(message: str) -> str:
    return message if len(message) <= LONGEST_WHY else f"{message[:LONGEST_WHY]}..."
