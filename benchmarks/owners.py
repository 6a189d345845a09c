"""Which owner each path gives to one cause: a table in Markdown, of operators and of networks.

    adreno-bench ops --set onnx --mode workarounds --json > cells.json
    adreno-bench run --suite light/light.toml --records light.jsonl
    python -m benchmarks.owners cells.json [light.jsonl...]

A case is an operator test or a network; its cause is what the first path on which it fails says. Paths on which it is
right say nothing. Exits with 1 if two paths give one case two owners.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.outcome import Outcome
from harness.base.tables import markdown_table

PATHS = ("opencl", "texture", "clml")
HEADERS = ("cause", "cases", "such as", *PATHS)


@dataclass(frozen=True)
class Finding:
    """How one case ended on one path."""

    case: str
    path: str
    outcome: Outcome
    message: str
    owner: str
    """The owner, and the outcome that says so."""

    @property
    def cause(self) -> str:
        """What it says, up to the first name of an operator or an error."""
        start = re.match(r".*?(does not know|is off|(?= on |:|$))", self.message)
        return re.sub(r"\(.*?\)+|R\.\w+|\d+", "#", start.group() if start else "")


@dataclass(frozen=True)
class Row:
    """Cases of one cause, with the owner that each path gives them; of a path on which they are right, none."""

    cause: str
    owners: Mapping[str, str]
    cases: Sequence[str]

    @property
    def agreed(self) -> bool:
        """Whether all paths on which the cases fail name one owner."""
        return len({owner.partition(" ")[0] for owner in self.owners.values()}) == 1

    @property
    def columns(self) -> tuple[object, ...]:
        """As the table has it."""
        mark = "" if self.agreed else " **disagree**"
        return (self.cause + mark, len(self.cases), self.cases[0], *(self.owners.get(path, "-") for path in PATHS))


def findings(file: Path) -> Iterator[Finding]:
    """Those of `ops --json`, or of records. Raises OSError and ValueError."""
    text = file.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        for cell in json.loads(text):
            yield _finding(cell["name"], cell["path"], cell)
    else:
        for line in text.splitlines():
            record = json.loads(line)
            case = dict(zip(("model", "path"), record["case"].split("-"), strict=False))
            yield _finding(case["model"], case["path"], record)


def _finding(case: str, path: str, plain: Mapping[str, Any]) -> Finding:
    outcome = Outcome(plain["outcome"])
    owner = plain.get("owner", outcome.owner.value)
    return Finding(case, path, outcome, plain["message"], f"{owner} ({outcome.value})")


def rows(found: Iterable[Finding]) -> list[Row]:
    """Return the causes, those of most cases first."""
    cases: dict[str, list[Finding]] = {}
    for one in found:
        if one.outcome is not Outcome.OK:
            cases.setdefault(one.case, []).append(one)
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for case, ends in cases.items():
        groups.setdefault((ends[0].cause, tuple((one.path, one.owner) for one in ends)), []).append(case)
    made = [Row(cause, dict(owners), names) for (cause, owners), names in groups.items()]
    return sorted(made, key=lambda row: (row.agreed, -len(row.cases), row.cause))


def main(files: Sequence[str]) -> int:
    """Print the table; returns the exit code."""
    found = [one for file in files for one in findings(Path(file))]
    made = rows(found)
    print(markdown_table([row.columns for row in made], HEADERS))
    disputed = sum(not row.agreed for row in made)
    print(f"\n{len({one.case for one in found})} cases, {len(made)} causes, {disputed} with two owners")
    return int(disputed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
