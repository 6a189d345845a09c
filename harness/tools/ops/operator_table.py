"""The results of `adreno-bench ops` with a release of TVM, which `inspect` reads: a small file for each release.

harness/tools/ops/tables/<release>.json    operator -> number format -> path -> verdict -> cases
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.files import write_whole
from harness.tools.ops.cells import CellVerdict

TABLES = Path(__file__).parent / "tables"
RIGHT = (CellVerdict.RIGHT, CellVerdict.NOT_OFFLOADED)
SILENT = (CellVerdict.NOT_RUN, CellVerdict.UNSUPPORTED)
"""Verdicts that say nothing about an operator."""
REFUSALS = (
    "TVM's ONNX importer",
    "TVM failed to import the model",
    "TVM failed to lower the model, in LegalizeOps",
)
"""How a refusal begins that depends on the attributes of a case. `inspect` asks about those of its network itself."""


@dataclass(frozen=True)
class OperatorTable:
    """Number of cases of each operator by outcome, on each path, with the known defects worked around."""

    tvm: str
    counts: Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]

    @classmethod
    def of(cls, tvm: str, cells: Iterable[Mapping[str, Any]]) -> OperatorTable:
        """Count the cells of a release, as `adreno-bench ops --json` prints them."""
        counts: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
        for cell in cells:
            refused = cell["verdict"] == CellVerdict.NOT_BUILT.value and cell["message"].startswith(REFUSALS)
            silent = refused or CellVerdict(cell["verdict"]) in SILENT
            if cell["tvm"] == tvm and not cell["as_shipped"] and not silent:
                row = counts.setdefault(cell["operator"], {}).setdefault(cell["dtype"], {}).setdefault(cell["path"], {})
                row[cell["verdict"]] = row.get(cell["verdict"], 0) + 1
        return cls(tvm, counts)

    @classmethod
    def find(cls, tvm: str, folder: Path = TABLES) -> OperatorTable | None:
        """Return the table of a release, None if there is none."""
        file = folder / f"{tvm}.json"
        return cls(tvm, json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None

    def write(self, folder: Path = TABLES) -> Path:
        """Write the table, a line for each operator; returns its file."""
        rows = (f"{json.dumps(name)}: {json.dumps(self.counts[name], sort_keys=True)}" for name in sorted(self.counts))
        return write_whole(folder / f"{self.tvm}.json", ("{\n" + ",\n".join(rows) + "\n}\n").encode())

    def cases(self, operator: str, dtypes: Collection[str], path: str) -> Counter[CellVerdict]:
        """Return the outcomes of an operator's cases on a path: in these number formats, or else in any."""
        rows = self.counts.get(operator, {})
        chosen = [row for dtype, row in rows.items() if dtype in dtypes] or list(rows.values())
        total: Counter[CellVerdict] = Counter()
        for row in chosen:
            total.update({CellVerdict(verdict): count for verdict, count in row.get(path, {}).items()})
        return total


def wrong_cases(cases: Mapping[CellVerdict, int]) -> dict[CellVerdict, int]:
    """Return the cases that are not right, by verdict, the most frequent first."""
    bad = {verdict: count for verdict, count in cases.items() if verdict not in RIGHT}
    return dict(sorted(bad.items(), key=lambda item: -item[1]))
