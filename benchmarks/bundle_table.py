"""What a bundle's run came to, as a table in Markdown: by case, over all its sessions.

    python -m benchmarks.bundle_table RESULTS [--bundle BUNDLE]

Times are medians over sessions of each session's median; "apart" is how far the sessions' medians lie from each other.
A launch costs what a batch of inferences takes beyond its kernels, shared out among the launches. The share of the peak
is what the network needs to compute, as TVM counts it in TIR, over the time of its kernels and the rate that the probe
measured on the device; of memory likewise, each tensor moved once.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from device_runner.store import cache_root
from harness.base.tables import markdown_table
from harness.compile.compiler.tir import OperatorWork
from harness.measure.facts import Batches
from harness.measure.probes.batches import launch_us
from harness.measure.records.record import Record
from harness.tools.bundle.manifest import PackedCase
from harness.tools.bundle.results import BundleResults, read_results

HEADERS = (
    *("case", "outcome", "error / tolerance", "wall ms", "apart", "kernels ms", "batched ms", "launches"),
    *("µs a launch", "of peak float32", "of peak copy"),
)


def rows(read: BundleResults) -> list[tuple[str, ...]]:
    """One row for each case of the bundle's head."""
    by_case: dict[str, list[Record]] = {}
    for turn, record in read.turns:
        if turn.build == "head":
            by_case.setdefault(turn.case, []).append(record)
    packed = {one.case: one for one in read.manifest.builds["head"].cases}
    return [_row(packed[case], records, read) for case, records in by_case.items()]


def _row(packed: PackedCase, records: Sequence[Record], read: BundleResults) -> tuple[str, ...]:
    outcomes = ", ".join(dict.fromkeys(record.outcome.value for record in records))
    one = records[-1]
    if not one.wall_ms:
        return (packed.case, outcomes, *["-"] * (len(HEADERS) - 2))
    walls = [statistics.median(record.wall_ms) for record in records]
    kernels_ms = statistics.median(statistics.median(record.device_ms) for record in records)
    costs = [launch_us(part, record.device_ms) for record in records if (part := record.part(Batches))]
    batches = one.part(Batches)
    known = [cost for cost in costs if cost is not None]
    return (
        packed.case,
        outcomes,
        f"{one.max_abs_err:.1e} / {one.tolerance:.1e}",
        f"{statistics.median(walls):.4g}",
        f"{max(walls) / min(walls) - 1:.1%}",
        f"{kernels_ms:.4g}",
        f"{statistics.median(batches.batched_ms):.4g}" if batches and batches.batched_ms else "-",
        str((batches and batches.launches) or "-"),
        f"{statistics.median(known):.2g}" if known else "-",
        *_shares(packed, kernels_ms / 1e3, read),
    )


def _shares(packed: PackedCase, kernels_s: float, read: BundleResults) -> tuple[str, str]:
    """Of what the device can do at best, in computing and in moving."""
    compiled = packed.artifact.compiled
    calls: dict[str, int] = {}
    for kernel, launch in (compiled.get("launches") or {}).items():
        calls[re.sub(r"_kernel(_\d+)?$", "", kernel)] = launch["per_inference"] or 0
    work = [(OperatorWork(**one), calls.get(one["function"], 0)) for one in compiled.get("work") or ()]
    flop, moved = sum((one.flops or 0) * times for one, times in work), sum(one.bytes * times for one, times in work)

    def share(done: float, peak: float | None) -> str:
        return f"{done / kernels_s / peak:.2%}" if done and peak else "-"

    return share(flop, read.peaks.get("float32_flop_s")), share(moved, read.peaks.get("copy_bytes_s"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a bundle's run came to.")
    parser.add_argument("results", type=Path)
    parser.add_argument("--bundle", type=Path, help="the bundle that was run, if it was not packed here")
    given = parser.parse_args()
    read = read_results(given.results, cache_root(), bundle=given.bundle)
    sys.stdout.write(markdown_table(rows(read), HEADERS) + "\n")


if __name__ == "__main__":
    main()
