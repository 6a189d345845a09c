"""Which networks ran on which path, as a table in Markdown of files of records.

    adreno-bench run --model squeezenet1_1 --model resnet18 --quick --records zoo.jsonl
    python -m benchmarks.model_table zoo.jsonl...

A cell has the outcome, and the largest error over the oracle's peak where there is one. What is not right is said once
more below, with its reason. Of several records of a case the last counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.run.outcome import Outcome
from harness.run.record import Record, RecordFile

PATHS = ("opencl", "texture", "clml")


def lines(records: Sequence[Record]) -> Iterator[str]:
    """The table, and below it what is not right."""
    last = {(record.model, record.precision, record.path): record for record in records}
    paths = [path for path in PATHS if any(path == key[2] for key in last)]
    devices = dict.fromkeys(f"{one.device}: {one.identity.gpu}, {one.identity.driver}" for one in last.values())
    yield f"TVM {', '.join(dict.fromkeys(one.tvm for one in last.values()))}; {'; '.join(devices)}\n"
    yield f"| network | precision | {' | '.join(paths)} |\n|{'---|' * (len(paths) + 2)}"
    for model, precision in dict.fromkeys(key[:2] for key in last):
        cells = (cell(last.get((model, precision, path))) for path in paths)
        yield f"| `{model}` | {precision} | {' | '.join(cells)} |"
    for record in last.values():
        if record.outcome is not Outcome.OK:
            yield f"\n{record.case}: {record.message}"


def cell(record: Record | None) -> str:
    """What a case came to."""
    if record is None:
        return "-"
    word = "right" if record.outcome is Outcome.OK else record.outcome.value
    error = f", {record.accuracy.max_rel_err:.1e}" if record.accuracy else ""
    return f"{word}{error}{', proves nothing' if record.vacuous else ''}"


if __name__ == "__main__":
    read = [record for name in sys.argv[1:] for record in RecordFile(Path(name)).load().records]
    print("\n".join(lines(read)))
