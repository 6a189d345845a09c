"""What a run spends on everything but inferences: its length less all inferences of its records.

    python -m benchmarks.rest_of_run RECORDS SECONDS

SECONDS is how long the run took. The first inference of a case counts whole, with the device's compilation of the
kernels; each batch of samples has one more inference than samples (TVM's time_evaluator makes one untimed call first).
Cases whose time is emulated leave none in their record and count as rest, and so does the reference kernel
(`benchmarks.reference_cost` times that). Goal for a second run of the default suite: at most 20 s.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.measure.facts import Sampling
from harness.measure.records.record import Record, RecordFile

WARM_UP_BATCH = 2


def inferences_ms(record: Record) -> float:
    """Return all inferences of one record, in ms."""
    sampling = record.part(Sampling)
    warm_up_ms = sampling.warm_up_ms if sampling else []
    batches = (record.wall_ms, record.device_ms)
    untimed = sum(samples[0] for samples in batches if samples) + sum(warm_up_ms[::WARM_UP_BATCH])
    return (record.first_run_ms or 0.0) + sum(warm_up_ms) + sum(map(sum, batches)) + untimed


def main(records: str, seconds: str) -> None:
    """Print both parts of the last run in the file."""
    kept = RecordFile(Path(records)).load().records
    last = [record for record in kept if record.run == kept[-1].run]
    inferences_s = sum(map(inferences_ms, last)) / 1e3
    print(f"{len(last)} cases in {float(seconds):.1f} s: inferences {inferences_s:.1f} s, ", end="")
    print(f"everything else {float(seconds) - inferences_s:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
