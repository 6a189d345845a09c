"""The machine code of a suite over releases of TVM, from the records that `adreno-bench isa` left.

    for release in 0.25.0.post1 0.26.0 0.27.0.post1; do
      adreno-bench isa --of $release --gpu a630,a740,a750 --records FILE
    done
    python -m benchmarks.isa_releases FILE [--gpu a740]

Prints a table in Markdown: weighted instructions of an inference in millions, each release's verdict against the one
before by the gate's own rule, and below it why, with the kernels.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.base.tables import markdown_table
from harness.compile.compiler.releases import RELEASES
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record, RecordFile
from harness.tools.isa.code import MachineCode, codes_in
from harness.tools.isa.gate import CodeVerdict, judge_code

By = Mapping[tuple[str, str], Record]
"""Records by case and release: the newest of each."""


def main(file: Path, only: str) -> None:
    """Print it."""
    records = RecordFile(file).load().records
    by = {(record.case, record.compilers.tvm): record for record in records}
    releases = [release for release in RELEASES if any(tvm == release for _, tvm in by)]
    compiled = {(record.case, code.gpu) for record in records for code in codes_in(record)}
    series = sorted((case, gpu) for case, gpu in compiled if only in ("", gpu))
    rows, reasons = [], []
    for case, gpu in series:
        row, why = _row(case, gpu, releases, by)
        rows.append((case, gpu, *row))
        reasons += why
    print(", ".join(sorted({code.compiler for record in records for code in codes_in(record)})), end="\n\n")
    print(markdown_table(rows, ("case", "GPU", *releases)), end="\n\n")
    print("\n".join(f"* {why}" for why in reasons))


def _row(case: str, gpu: str, releases: Sequence[str], by: By) -> tuple[list[str], list[str]]:
    cells, reasons = [], []
    before: MachineCode | None = None
    for release in releases:
        record = by.get((case, release))
        code = next((code for code in codes_in(record) if code.gpu == gpu), None) if record else None
        if record is None or code is None:
            cells.append(record.outcome.value if record else "-")
            continue
        found = judge_code(case, [before] if before else [], code)
        cells.append(" ".join(_cell(code, found)))
        if found.verdict not in (Verdict.NEW, Verdict.SAME):
            reasons.append(f"{case}, {gpu}, {release}: {found.verdict.value}: {found.why}")
        before = code
    return cells, reasons


def _cell(code: MachineCode, found: CodeVerdict) -> Iterator[str]:
    run = code.per_inference("instructions_run")
    yield "?" if run is None else f"{run / 1e6:,.0f}"
    if found.verdict is not Verdict.NEW:
        yield found.verdict.value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("--gpu", default="", help="only this one")
    asked = parser.parse_args()
    main(asked.records, asked.gpu)
