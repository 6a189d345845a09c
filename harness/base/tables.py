"""Tables and text for people: no wider than the terminal, and whole and always the same where there is none.

This is the one place that knows widths. A table that is too wide first puts its headers on several lines and folds its
prose, then folds names of cases and models behind their hyphens, then leaves out columns, the least important first,
and says so; if that is not enough, its rows are stacked. No word is ever cut: one that is longer than the terminal is
left to the terminal.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TextIO, TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
GAP = 2
NARROWEST_PROSE = 20
"""A column of prose that is narrower is no pleasure to read."""


NAMES = ("case", "model")
"""Headers of columns whose cells are names: `mobilenet_v3_small-texture-float16-untuned`."""
NARROWEST_NAME = 16

NOTHING = "-"
"""A cell without a value."""


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal that standard output (or `stream`) is; None for a pipe or a file."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def table(
    rows: Iterable[Sequence[object]],
    headers: Sequence[str],
    *,
    right: Sequence[str] = (),
    prose: Sequence[str] = (),
    alike: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> str:
    """Return a table with all its columns, or as many as the terminal has room for.

    By header: `right` are aligned to the right, `prose` may be folded between words, `alike` may be said once below the
    table if they are the same in every row, and `spare` may be left out, the least important first.
    """
    whole = _Grid(headers, [[*map(str, row), *[""] * (len(headers) - len(row))] for row in rows], right, prose)
    width = terminal_width()
    if width is None or max(map(len, whole.drawn().split("\n"))) <= width:
        return whole.drawn()
    shared = {name: whole.common(name) for name in alike if whole.common(name)}
    empty = [name for name in spare if name in headers and whole.common(name) == NOTHING]
    ranked = [*shared, *empty, *(name for name in spare if name in headers and name not in empty)]
    folding, lossless = replace(whole, folds_names=True), len(shared) + len(empty)
    ways = [(whole, ranked[:count]) for count in range(lossless + 1)]
    ways += [(folding, ranked[:count]) for count in range(lossless, len(ranked) + 1)]
    grid, gone = next(((grid, gone) for grid, gone in ways if grid.without(gone).fitted(width)), (None, []))
    if grid is None:
        return whole.stacked()
    for name in [name for name in reversed(gone) if name not in empty]:  # a narrow column may fit beside what is left
        fewer = [other for other in gone if other != name]
        if grid.without(fewer).fitted(width):
            gone = fewer
    return grid.without(gone).fitted(width) + _note({name: shared.get(name, "") for name in gone})


def markdown_table(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> str:
    """Return a table for a page that GitHub draws."""
    from tabulate import tabulate

    return tabulate([list(row) for row in rows], headers, tablefmt="github", disable_numparse=True)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items of each key, in their order; the keys in the order of their first items."""
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun or verb: `1 case`, `2 cases`."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def listed(names: Iterable[str], most: int) -> str:
    """Join names; of many only the first ones, and how many more there are: `a, b and 3 more`."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def size(count_bytes: float | None) -> str:
    """Return a number of bytes for people."""
    if count_bytes is None:
        return "-"
    for unit in ("B", "kB", "MB"):
        if count_bytes < 1000:
            return f"{count_bytes:.3g} {unit}"
        count_bytes /= 1000
    return f"{count_bytes:.3g} GB"


def folded(text: str, stream: TextIO | None = None) -> str:
    """Text for standard output (or `stream`), folded between words if it is a terminal.

    A line that stands in columns goes on below its last one.
    """
    width = terminal_width(stream)
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _folded_line(line, width))


def _folded_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    gaps = [gap.end() for gap in re.finditer(r"\s{2,}", line) if gap.end() <= 0.6 * width]
    begin = len(line) - len(line.lstrip())
    hang = gaps[-1] if gaps and gaps[-1] > begin else begin + GAP
    return _words(line, width, " " * min(hang, max(0, width - _longest_word(line))))


def _words(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    ) or [""]


def _folded_name(name: str, width: int) -> list[str]:
    """Return a name in lines that end behind a hyphen or underscore."""
    lines = [""]
    for part in _parts(name):
        lines = [*lines[:-1], lines[-1] + part] if len(lines[-1]) + len(part) <= width else [*lines, part]
    return [line for line in lines if line] or [""]


def _parts(name: str) -> list[str]:
    return re.findall(r"[^-_]*[-_]|[^-_]+", name)


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _note(left_out: dict[str, str]) -> str:
    """Return what the terminal had no room for."""
    same = [f"{name} {value}" for name, value in left_out.items() if value]
    gone = [name for name, value in left_out.items() if not value]
    lines = [f"in every row: {', '.join(same)}"] if same else []
    lines += [f"no room for: {', '.join(gone)} (a wider terminal, a pipe and --json have them)"] if gone else []
    return "".join(f"\n{line}" for line in lines)


@dataclass(frozen=True)
class _Grid:
    """Cells, and how each column is drawn."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str]
    prose: Sequence[str]
    folds_names: bool = False

    def common(self, header: str) -> str:
        """Return the value of every row, if there are several rows and one value."""
        values = {row[self.headers.index(header)] for row in self.rows}
        return values.pop() if len(self.rows) > 1 and len(values) == 1 else ""

    def without(self, gone: Sequence[str]) -> _Grid:
        indices = [index for index, header in enumerate(self.headers) if header not in gone]
        rows = [[row[index] for index in indices] for row in self.rows]
        return replace(self, headers=[self.headers[index] for index in indices], rows=rows)

    def drawn(self) -> str:
        """Draw the table at its natural width."""
        from tabulate import tabulate

        align = self._align if self.rows else None
        return tabulate(self.rows, self.headers, colalign=align, disable_numparse=True)

    def fitted(self, width: int) -> str:
        """Draw it with headers on several lines and folded prose; empty if it is still too wide."""
        from tabulate import tabulate

        widths = self._widths(width)
        if not widths:
            return ""
        heads = ["\n".join(_words(header, size)) for header, size in zip(self.headers, widths, strict=True)]
        rows = [
            [self._folded(header, cell, size) for header, cell, size in zip(self.headers, row, widths, strict=True)]
            for row in self.rows
        ]
        lines = [heads, ["-" * size for size in widths], *rows]
        return "\n".join(
            line.rstrip()
            for line in tabulate(lines, tablefmt="plain", colalign=self._align, disable_numparse=True).split("\n")
        )

    def _folded(self, header: str, cell: str, size: int) -> str:
        if self._is_name(header):
            return "\n".join(_folded_name(cell, size))
        return "\n".join(p for line in cell.split("\n") for p in _words(line, size)) if header in self.prose else cell

    def _is_name(self, header: str) -> bool:
        return self.folds_names and header in NAMES and header not in self.prose

    def _widths(self, width: int) -> list[int]:
        """Width of each column; empty if they have no room beside each other."""
        cells = [[row[index] for row in self.rows] for index in range(len(self.headers))]
        longest = [max((len(line) for cell in column for line in cell.split("\n")), default=0) for column in cells]
        least = [max(_longest_word(header), size) for header, size in zip(self.headers, longest, strict=True)]
        folds = [index for index, header in enumerate(self.headers) if header in self.prose or self._is_name(header)]
        for index in (index for index in folds if self._is_name(self.headers[index])):
            longest_part = max((len(part) for cell in cells[index] for part in _parts(cell)), default=0)
            least[index] = min(least[index], max(NARROWEST_NAME, longest_part))
        for index in (index for index in folds if self.headers[index] in self.prose):
            longest_word = max(map(_longest_word, (self.headers[index], *cells[index])))
            least[index] = min(least[index], max(NARROWEST_PROSE, longest_word))
        left = width - sum(least) - GAP * (len(least) - 1)
        if left < 0:
            return []
        for index in folds:
            more = min(left, max(0, longest[index] - least[index]))
            least[index], left = least[index] + more, left - more
        return least

    def stacked(self) -> str:
        """Draw each row as a paragraph: its first cell, and below it the names and values of the others."""
        label = max(map(len, self.headers[1:]), default=0)
        return "\n".join(
            "\n".join([row[0], *(f"  {name:{label}}  {cell}" for name, cell in cells if cell not in ("", "-"))])
            for row in self.rows
            for cells in [list(zip(self.headers[1:], row[1:], strict=True))]
        )

    @property
    def _align(self) -> list[str]:
        return ["right" if header in self.right else "left" for header in self.headers]
