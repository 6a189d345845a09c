"""How much more eight devices get done than one, where the work is waiting: cases per minute, and the ratio.

    python -m benchmarks.fleet_throughput [DEVICES] [ROUNDS]

Virtual phones whose inferences are simulated: they last half a second, as a large network's on a phone may, without
computing so long. With the default budget a case then takes 20 s. Each device gets ROUNDS cases, which all have the
same artifact; they are tuned, so that no kernel is compiled on this host, as none would be for a phone. The time runs
from the start of the first case to the last record: what a run of hours is made of. Goal: at least 7 with eight.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from device_runner.store import cache_root
from harness.compile.models.sources import model_source
from harness.measure.records.record import RecordFile

FAULTS = {"simulate_inference_s": 0.5}


def main(devices: int = 8, rounds: int = 2) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "faults.json").write_text(json.dumps(FAULTS))
        _run(home, "warm-up", 1, 1)
        alone = _run(home, "one device", 1, rounds)
        together = _run(home, f"{devices} devices", devices, rounds)
        print(f"{devices} devices get {together / alone:.2f} times as much done as one (goal for eight: 7)")


def _run(home: Path, title: str, devices: int, rounds: int) -> float:
    """Cases per minute."""
    count = devices * rounds
    onnx = model_source("tiny").onnx_file(cache_root() / "models")
    models = ", ".join(f'{{ onnx = "{onnx}", name = "case{number}" }}' for number in range(count))
    (home / "adreno-bench.toml").write_text(f'models = [{models}]\npaths = ["opencl"]\ntunings = ["tuned"]\n')
    file = home / f"{title}.jsonl"
    command = [sys.executable, "-c", "from harness.cli import main; main()", "run", "--device", f"virtual:{devices}"]
    began = time.time()
    done = subprocess.run(
        [*command, "--records", str(file)],
        cwd=home,
        env={**os.environ, "ADRENO_BENCH_VIRTUAL_FAULTS": str(home / "faults.json")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    took_s = time.time() - began
    records = RecordFile(file).load().records
    assert len(records) == count
    first = min(datetime.fromisoformat(record.started_at) for record in records).timestamp()
    seconds = file.stat().st_mtime - first
    inference_ms = sorted(ms for record in records for ms in record.wall_ms)[len(records[0].wall_ms) * count // 2]
    print(
        f"{title}: {count} cases in {seconds:.1f} s ({took_s:.1f} s with opening), "
        f"{count / seconds * 60:.2f} per minute, median inference {inference_ms:.0f} ms",
        flush=True,
    )
    return count / seconds * 60


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
