"""Memory of a whole run on the host, beside its largest compile worker.

    python -m benchmarks.host_memory [SUITE] [GLOB]

Runs `adreno-bench run` in an empty cache and samples the memory of everything below it ten times a second. What several
processes share is counted once.
Goal: the peak is at most 1.5 GB above the largest compile worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import psutil

PERIOD_S = 0.1
WORKER = "harness.compile.artifacts.fork_server"


def memory_bytes(root: psutil.Process) -> tuple[int, int]:
    """Of all processes from `root` down, and of the largest compile worker among them with what it shares."""
    total = largest = 0
    for process in (root, *root.children(recursive=True)):
        try:
            memory = process.memory_full_info()
            total += memory.pss
            if WORKER in process.cmdline():
                largest = max(largest, memory.rss)
        except psutil.NoSuchProcess:  # it ended while we looked
            continue
    return total, largest


def main(suite: str = "adreno-bench.toml", glob: str = "*") -> None:
    """Print the peak of the run, of its largest worker, and the difference."""
    command = [sys.executable, "-c", "from harness.cli import main; main()", "run", "--suite", suite, "--case", glob]
    with tempfile.TemporaryDirectory() as cache:
        records = f"{cache}/records.jsonl"
        environment = {**os.environ, "ADRENO_BENCH_CACHE": cache}
        with subprocess.Popen([*command, "--records", records], env=environment, stdout=subprocess.DEVNULL) as run:
            peak = worker = 0
            while run.poll() is None:
                try:
                    total, largest = memory_bytes(psutil.Process(run.pid))
                except psutil.NoSuchProcess:
                    break
                peak, worker = max(peak, total), max(worker, largest)
                time.sleep(PERIOD_S)
    print(f"peak of the run        {peak / 1e9:.2f} GB")
    print(f"largest compile worker {worker / 1e9:.2f} GB")
    print(f"above it               {(peak - worker) / 1e9:.2f} GB (goal: at most 1.5 GB)")


if __name__ == "__main__":
    main(*sys.argv[1:])
