"""How large the house is: lines, modules, and how many of the modules `adreno-bench run` reaches.

python -m benchmarks.house

Lines are those of all files that git tracks in `harness` and `device_runner`. A module is reached if a chain of imports
leads to it from `harness.cli.run`, those inside functions included and those for type checkers alone left out.
"""

from __future__ import annotations

import subprocess

import grimp
from tabulate import tabulate

PACKAGES = ("harness", "device_runner")
START = "harness.cli.run"


def lines() -> int:
    """Lines of all tracked files."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], check=True, capture_output=True).stdout
    total = 0
    for name in filter(None, listed.split(b"\0")):
        with open(name, "rb") as file:  # noqa: PTH123 (names of bytes, as git gives them)
            total += sum(1 for _ in file)
    return total


def main() -> None:
    """Print the figures."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    reached = graph.find_upstream_modules(START) | {START}
    rows = [("lines", lines()), ("modules", len(graph.modules)), (f"reached by {START}", len(reached))]
    print(tabulate(rows, tablefmt="plain"))


if __name__ == "__main__":
    main()
