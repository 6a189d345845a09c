"""The summary of `adreno-bench show CASE`: one record in about ten lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.base.tables import counted
from harness.judge.remarks import remarks
from harness.judge.report import words
from harness.judge.report.facts import case_facts, clock_text, device_facts, heat_text, reproduce
from harness.judge.report.matrix import entries_of, matrices_of
from harness.judge.report.part_view import part_facts
from harness.judge.stats.sample_summary import summarise_samples
from harness.judge.stats.session import location_ms
from harness.measure.records.record import Record

BARS = " ▁▂▃▄▅▆▇█"
BINS = 32
LABEL = 14
FEWEST_FOR_P99 = 100
"""Of fewer samples the 99th percentile is the largest, and called so."""
MEMORY = ("peak memory", "peak GPU memory", "planned memory", "library")


def case_summary(record: Record) -> str:
    """Summarise a record: state, latency and percentiles, a histogram, both clocks, memory, heat, and the command."""
    (entry,) = entries_of([[record]])
    (matrix,) = matrices_of([entry])
    device, case = dict(device_facts(matrix)), dict(case_facts(entry))
    state = f"{words.SYMBOLS[entry.state]} {entry.state.value}"
    outcome = f", {record.outcome.value} (owner: {record.owner.value}): {record.message}" if record.message else ""
    lines = [
        ("case", f"{record.case}{' as shipped' * record.as_shipped}"),
        ("state", f"{state}{outcome}"),
        ("hint", record.hint),
        *((remark.word, remark.why) for remark in remarks(record)),
        ("error", ", ".join(filter(None, (case.get("error"), record.judge and f"judged by {record.judge}")))),
        *part_facts(record),
        *(_samples("latency", record.wall_ms) if entry.wall_ms else []),
        *(_samples("device", record.device_ms)[:1] if entry.wall_ms else []),
        ("also", "; ".join(f"{name} {case[name]}" for name in ("throughput", "first run", "load") if name in case)),
        ("memory", "; ".join(f"{name} {case[name]}" for name in MEMORY if name in case)),
        ("GPU", "; ".join(filter(None, (clock_text([record]), heat_text([record]))))),
        ("device", ", ".join(filter(None, (device.get("SoC"), device.get("GPU"), f"TVM {record.compilers.tvm}")))),
        ("emulated", ", ".join(record.emulated)),
        ("command", reproduce(record)),
    ]
    texts = [f"{name:{LABEL}} {value}" for name, value in lines if value]
    return "\n".join([*texts, "", f"`adreno-bench show --all {record.case}` shows every field"])


def histogram(samples: Sequence[float]) -> str:
    """Return a histogram of samples in characters: each is a bin, full where most samples are."""
    counts = np.histogram(samples, BINS)[0].tolist()
    most = max(counts)
    return "".join(BARS[-(-count * (len(BARS) - 1) // most)] for count in counts)


def _samples(name: str, samples_ms: Sequence[float]) -> list[tuple[str, str]]:
    """Format median, interval and percentiles, and a histogram if the samples differ."""
    summary = summarise_samples(samples_ms)
    if summary is None:
        return []
    interval = f" ({summary.low_ms:.4g} to {summary.high_ms:.4g})" if summary.low_ms and summary.high_ms else ""
    tail = f"p99 {summary.p99_ms:.4g}" if summary.count >= FEWEST_FOR_P99 else f"max {summary.max_ms:.4g}"
    text = (
        f"{words.latency(location_ms(samples_ms))}; median {summary.median_ms:.4g}{interval}, "
        f"min {summary.min_ms:.4g}, p90 {summary.p90_ms:.4g}, {tail}, {counted(summary.count, 'sample')}"
    )
    if summary.min_ms == summary.max_ms:
        return [(name, text)]
    return [(name, text), ("", f"{summary.min_ms:.4g} {histogram(samples_ms)} {summary.max_ms:.4g} ms")]
