"""How many networks each defect of TVM hits, by path: those in which its workaround changed what was built.

    adreno-bench build --suite zoo.toml --device none --json > built.json
    python -m benchmarks.quirk_hits built.json...

Prints a table in Markdown. A network that does not compile counts for no defect.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.compile.quirks import QUIRKS
from harness.tools.shared.markdown import unpadded_markdown

PATHS = ("opencl", "texture", "clml")


def hits(cases: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, set[str]]]:
    """Return the networks by defect and path, of the cases of `adreno-bench build --json`."""
    found: dict[str, dict[str, set[str]]] = {}
    for case in cases:
        model, path = case["case"].split("-")[:2]
        for quirk in case["effective_quirks"] or ():
            found.setdefault(quirk, {}).setdefault(path, set()).add(model)
    return found


def main(files: Sequence[str]) -> None:
    """Print the table."""
    cases = [case for file in files for case in json.loads(Path(file).read_text(encoding="utf-8"))["cases"]]
    built = [case for case in cases if case["effective_quirks"] is not None]
    found = hits(built)
    rows = []
    for quirk in QUIRKS:
        by_path = found.get(quirk.id, {})
        networks = set[str]().union(*by_path.values())
        rows.append(
            (f"`{quirk.id}`", *(str(len(names)) for names in (networks, *(by_path.get(path, ()) for path in PATHS))))
        )
    rows.sort(key=lambda row: -int(row[1]))
    models = {case["case"].split("-")[0] for case in built}
    print(unpadded_markdown(rows, ("quirk", "networks", *PATHS)))
    print(f"\n{len(models)} networks, {len(built)} of {len(cases)} cases built: {', '.join(sorted(models))}")


if __name__ == "__main__":
    main(sys.argv[1:])
