"""The operators as tables: for a terminal, in Markdown, and for a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.base.tables import grouped, listed, table
from harness.tools.ops.cells import MODES, CellVerdict
from harness.tools.shared.markdown import unpadded_markdown

Plain = Mapping[str, Any]
"""One cell, as `harness.tools.ops.run.CellResult.plain` has it, with `tvm`, the release that compiled it."""

MARKS = {
    CellVerdict.RIGHT: "✓",
    CellVerdict.NOT_OFFLOADED: "=",
    CellVerdict.UNSUPPORTED: "○",
    CellVerdict.WRONG: "✗",
    CellVerdict.NOT_BUILT: "■",
    CellVerdict.CRASH: "†",
    CellVerdict.NOT_RUN: "?",
}
LEGEND = (
    "cases that are ✓ right, = right by the code of path opencl (nothing in an image, nothing given to CLML), "
    "✗ wrong, ■ do not build, † crash, ○ build and cannot run on this device, ? could not be run"
)
BAD = (CellVerdict.WRONG, CellVerdict.NOT_BUILT, CellVerdict.CRASH)
LONGEST_WHY, MOST_NAMES = 160, 4


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    tvm: str
    path: str
    as_shipped: bool

    @classmethod
    def of(cls, cell: Plain) -> Column:
        """Return the column that a cell stands in."""
        return cls(cell["tvm"], cell["path"], cell["as_shipped"])


class Grid(NamedTuple):
    """One table: a row for each operator and number format, and last the sum."""

    title: str
    """Empty where there is only one."""
    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Coverage:
    """Cells, counted for people. Several releases of TVM stand side by side in a table for each path."""

    def __init__(self, cells: Sequence[Plain]) -> None:
        self.cells = cells
        self.columns = list(dict.fromkeys(map(Column.of, cells)))
        self._releases = list(dict.fromkeys(column.tvm for column in self.columns))
        self._counted = self._count()

    def grids(self) -> list[Grid]:
        """Return the tables."""
        if len(self._releases) == 1:
            return [
                self._grid("", self.columns, [f"{column.path}, {MODES[column.as_shipped]}" for column in self.columns])
            ]
        grids = []
        for path in dict.fromkeys(column.path for column in self.columns):
            of_path = sorted((column for column in self.columns if column.path == path), key=self._place)
            headers = [f"{column.tvm}, {MODES[column.as_shipped]}" for column in of_path]
            grids.append(self._grid(f"Path {path}", of_path, headers))
        return grids

    def _place(self, column: Column) -> tuple[bool, int]:
        return column.as_shipped, self._releases.index(column.tvm)

    def _count(self) -> dict[tuple[str, str], dict[Column, Counter[CellVerdict]]]:
        counted: dict[tuple[str, str], dict[Column, Counter[CellVerdict]]] = {}
        for cell in self.cells:
            row = counted.setdefault((cell["operator"], cell["dtype"]), {})
            row.setdefault(Column.of(cell), Counter())[CellVerdict(cell["verdict"])] += 1
        return dict(sorted(counted.items()))

    def _grid(self, title: str, columns: Sequence[Column], headings: Sequence[str]) -> Grid:
        rows = [(*name, *_marks(row, columns)) for name, row in self._counted.items()]
        total: dict[Column, Counter[CellVerdict]] = {column: Counter() for column in columns}
        for row in self._counted.values():
            for column in columns:
                total[column].update(row.get(column, Counter()))
        return Grid(title, ("operator", "dtype", *headings), [*rows, ("all", "", *_marks(total, columns))])

    def findings(self) -> list[tuple[str, ...]]:
        """Return the findings, grouped by message: verdict, path, releases if several, cases, which, why."""

        def alike(cell: Plain) -> tuple[CellVerdict, str, bool, str]:
            verdict = CellVerdict(cell["verdict"])
            about = cell["operator"] if verdict is CellVerdict.WRONG else _pattern(cell["message"])
            return verdict, cell["path"], cell["as_shipped"], about

        groups = grouped((cell for cell in self.cells if cell["verdict"] in BAD), alike)
        paths = list(dict.fromkeys(column.path for column in self.columns))
        order = sorted(groups.items(), key=lambda item: (BAD.index(item[0][0]), item[0][2], paths.index(item[0][1])))
        return [
            (
                verdict.value,
                f"{path}, {MODES[as_shipped]}",
                *self._in_releases(cells),
                str(len({(cell["name"], cell["dtype"]) for cell in cells})),
                _names(cells),
                _why(cells[0]["message"]),
            )
            for (verdict, path, as_shipped, _), cells in order
        ]

    def _in_releases(self, cells: Sequence[Plain]) -> tuple[str, ...]:
        if len(self._releases) == 1:
            return ()
        releases = [release for release in self._releases if any(cell["tvm"] == release for cell in cells)]
        return ("all" if releases == self._releases else ", ".join(releases),)

    @property
    def finding_headers(self) -> tuple[str, ...]:
        """Headers of the table of `findings`."""
        return ("verdict", "path", *(("TVM",) if len(self._releases) > 1 else ()), "cases", "such as", "why")

    def text(self) -> str:
        """Return the page as text for a terminal."""
        parts: list[str] = []
        for title, headers, rows in self.grids():
            parts += [*filter(None, [title]), table(rows, headers, alike=("dtype",))]
        parts.append(LEGEND)
        if findings := self.findings():
            parts.append(table(findings, self.finding_headers, prose=("such as", "why"), right=("cases",)))
        return "\n\n".join(parts)

    def markdown(self, facts: Mapping[str, str]) -> str:
        """Return the page as Markdown. `facts` name its releases and device."""
        caption = " · ".join(f"{name} {text}" for name, text in facts.items())
        parts = [
            "# Operators, path by path",
            f"{caption}. Made by `adreno-bench ops --markdown`.",
            f"Numbers of {LEGEND}.",
        ]
        for grid in self.grids():
            parts += [f"## {grid.title}"] if grid.title else []
            parts.append(unpadded_markdown(grid.rows, grid.headers))
        if findings := self.findings():
            escaped = [[_as_markdown(cell) for cell in row] for row in findings]
            parts += ["## What is not right", unpadded_markdown(escaped, self.finding_headers)]
        return "\n\n".join(parts)

    def tables(self) -> list[Grid]:
        """Return the tables of a page, with the wrong cases last."""
        findings = self.findings()
        return [*self.grids(), *([Grid("What is not right", self.finding_headers, findings)] if findings else [])]


def _marks(row: Mapping[Column, Counter[CellVerdict]], columns: Sequence[Column]) -> Iterator[str]:
    for column in columns:
        counts = row.get(column, Counter())
        yield " ".join(f"{mark}{counts[verdict]}" for verdict, mark in MARKS.items() if counts[verdict]) or "-"


def _as_markdown(text: str) -> str:
    """So that nothing in a message is taken for markup."""
    return re.sub(r"([|<>*_`])", r"\\\1", text)


def _names(cells: Sequence[Plain]) -> str:
    operators = dict.fromkeys(cell["operator"] for cell in cells)
    if len(operators) == 1:
        return listed(dict.fromkeys(cell["name"] for cell in cells), MOST_NAMES)
    return listed(operators, MOST_NAMES)


def _pattern(message: str) -> str:
    """Return a message without what differs from case to case: numbers, and what is in quotation marks."""
    return re.sub(r"\d+|'[^']*'|\"[^\"]*\"|\bon [^:]+(?=:)", "#", message)[:LONGEST_WHY]


def _why(message: str) -> str:
    return message if len(message) <= LONGEST_WHY else f"{message[:LONGEST_WHY]}..."
