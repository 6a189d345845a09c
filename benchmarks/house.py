"""How large the house is: lines and modules of each wing, and how many of the modules `adreno-bench run` reaches.

python -m benchmarks.house

Lines are those of all text files that git tracks in `harness` and `device_runner`: a trained network has none. The core
is what is neither a tool nor a stand-in. A module is reached if a chain of imports leads to it from `harness.cli.run`,
imports inside functions included.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tabulate import tabulate

from harness.compile.artifacts.keys import ROOT, imported_files

TOOLS, STAND_INS = "harness/tools/", "device_runner/stand_ins/"
PACKAGES = ("harness", "device_runner")
START = "harness.cli.run"


def main() -> None:
    """Print the figures."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], check=True, capture_output=True, text=True, cwd=ROOT)
    names = [name for name in listed.stdout.split("\0") if name]
    wings = {
        "core": [name for name in names if not name.startswith((TOOLS, STAND_INS))],
        "tools": [name for name in names if name.startswith(TOOLS)],
        "stand-ins": [name for name in names if name.startswith(STAND_INS)],
        "whole": names,
        f"reached by {START}": [str(file.relative_to(ROOT)) for file in imported_files(ROOT, [START])],
    }
    rows = [(wing, _lines(files), sum(Path(file).suffix == ".py" for file in files)) for wing, files in wings.items()]
    print(tabulate(rows, ["", "lines", "modules"], tablefmt="plain"))


def _lines(names: Iterable[str]) -> int:
    contents = ((ROOT / name).read_bytes() for name in names)
    return sum(content.count(b"\n") for content in contents if b"\0" not in content)


if __name__ == "__main__":
    main()
