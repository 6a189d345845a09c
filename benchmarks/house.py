"""How large the house is: lines, modules, and how many of the modules `adreno-bench run` reaches.

python -m benchmarks.house

Lines are those of all files that git tracks in `harness` and `device_runner`. A module is reached if a chain of imports
leads to it from `harness.cli.run`, imports inside functions included.
"""

from __future__ import annotations

import subprocess

from tabulate import tabulate

from harness.compile.artifacts.keys import ROOT, imported_files

PACKAGES = ("harness", "device_runner")
START = "harness.cli.run"


def main() -> None:
    """Print the figures."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], check=True, capture_output=True, text=True, cwd=ROOT)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    modules = sum(file.suffix == ".py" for file in files)
    rows = [("lines", lines), ("modules", modules), (f"reached by {START}", len(imported_files(ROOT, [START])))]
    print(tabulate(rows, tablefmt="plain"))


if __name__ == "__main__":
    main()
