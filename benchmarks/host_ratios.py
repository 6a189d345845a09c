"""The host's benchmarks as ratios: to a fixed piece of work of the same run, and of those ratios to the saved ones.

    python -m benchmarks.host_ratios RESULT.json [--save]

RESULT.json is what `pytest benchmarks/test_host.py --benchmark-json RESULT.json` wrote. A ratio to the saved one of
1.00 is as fast as it was, whatever the machine; below or above that by half is worth a look, on an idle machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tabulate import tabulate

REFERENCE = "test_reference"
SAVED = Path(__file__).with_name("host_baseline.json")


def main(result: str, save: str = "") -> None:
    """Print the table; with `--save`, make this run the saved one."""
    fastest_s = fastest(json.loads(Path(result).read_text(encoding="utf-8")))
    now = relative(fastest_s)
    saved = json.loads(SAVED.read_text(encoding="utf-8")) if SAVED.exists() else {}
    rows = [
        (name, f"{fastest_s[name] * 1e3:.3g}", f"{ratio:.3g}", f"{ratio / saved[name]:.2f}" if name in saved else "new")
        for name, ratio in now.items()
    ]
    print(
        tabulate(rows, headers=("step", "fastest ms", "of the reference", "of the saved ratio"), disable_numparse=True)
    )
    if save == "--save":
        SAVED.write_text(json.dumps({name: float(f"{ratio:.3g}") for name, ratio in now.items()}, indent=1) + "\n")


def fastest(result: dict[str, list[dict[str, dict[str, float]]]]) -> dict[str, float]:
    """Seconds of each benchmark when least disturbed: the median of a busy machine tells of its other work."""
    return {str(one["name"]): one["stats"]["min"] for one in result["benchmarks"]}


def relative(fastest_s: dict[str, float]) -> dict[str, float]:
    """Return each as a multiple of the reference. Raises SystemExit if the run has none."""
    if not fastest_s.get(REFERENCE):
        raise SystemExit(f"{REFERENCE} was not measured, so nothing can be compared with it")
    return {name: seconds / fastest_s[REFERENCE] for name, seconds in fastest_s.items() if name != REFERENCE}


if __name__ == "__main__":
    main(*sys.argv[1:])
