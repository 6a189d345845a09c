"""What commands take to read many records: seconds, seconds of processor time (for a busy machine) and memory.

    python -m benchmarks.record_scale [--records N] [--series N] [--sessions N] [--in FOLDER] [--of CHECKOUT]
                                      [--limit SECONDS]

Makes a file of records like those of a nightly job on a phone (true ones, 12 samples each, 4 kB), SESSIONS sessions of
each build, and runs each command on it in a process of its own. `--of` measures another checkout of this project.
The first `show` makes the index; all other commands find it. A million records are 4 GB in the temporary folder, or in
that of `--in`, where they are kept for the next time (with the index and the baselines, which then are not made again).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from device_runner.device import Identity
from harness.base.case import Case, Precision, Tuning
from harness.measure.records.record import Record, RecordFile

HERE = Path(__file__).parent.parent
EXAMPLE = "docs/example/results/*/*.jsonl"
PHONE = Identity("phone", "1a2b3c4d", "SM8650", "Adreno750", "OpenCL 3.0 QUALCOMM build: 0762.10", abi="arm64-v8a")
NOISES = 1000
COMMAND = ("-c", "from harness.cli import main; main()")
RESUME = """
import sys
from pathlib import Path
from types import SimpleNamespace as Facts
from harness.measure.records.record import RecordFile
from harness.measure.runner import missing_plans, settled_by
file, identity, plans = Path(sys.argv[1]), sys.argv[2], []
for line in sys.stdin:
    case, artifact = line.split()
    plans.append(Facts(case=Facts(id=case), compile=Facts(key=artifact), budget=Facts(quick=False)))
origin = Facts(identity=Facts(key=identity, runtime=""), as_shipped=False)
try:
    from harness.measure.records.index import RecordIndex
except ImportError:
    left = missing_plans(plans, origin, RecordFile(file).load().records)
else:
    left = missing_plans(plans, settled_by(plans, origin, RecordIndex(file)))
print(len(left), "of", len(plans), "cases are left to run")
"""


def case_of(series: int) -> Case:
    """Return the case of a series: four of each model."""
    precision = Precision.FLOAT16 if series & 2 else Precision.FLOAT32
    return Case(f"model{series // 4}", ("opencl", "texture")[series & 1], precision, Tuning.UNTUNED)


def artifact_of(series: int, build: int) -> str:
    """Return a key as the store makes them."""
    return hashlib.sha256(f"{series} {build}".encode()).hexdigest()[:24]


def lines(records: int, series: int, sessions: int) -> Iterator[str]:
    """Yield records in rounds over all series, as a nightly job writes them."""
    rng = random.Random(1)
    noises = [[rng.gauss(1, 0.008) for _ in range(12)] for _ in range(NOISES)]
    example = RecordFile(next(HERE.glob(EXAMPLE))).load().records[0]
    phone = replace(PHONE, extensions=example.identity.extensions)
    shapes = [shape_of(example, number, phone) for number in range(series)]
    for number in range(records):
        of, taken = number % series, number // series
        middle = 10 + of % 7 + (3 if of % 10 == 0 and taken // sessions > of % 50 else 0)
        bias = middle * rng.gauss(1, 0.004)
        samples = [[round(bias * noise, 6) for noise in rng.choice(noises)] for _ in range(2)]
        started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_700_000_000 + 60 * number))
        yield shapes[of] % (artifact_of(of, taken // sessions), *samples, started, f"{taken:012x}")


def shape_of(example: Record, series: int, phone: Identity) -> str:
    """Return the record of a series on a phone with gaps for what differs between its sessions."""
    case = case_of(series)
    facts = {"case": case.id, "model": case.model, "path": case.path, "precision": case.precision.value}
    where = {"device": phone.serial, "identity": phone, "identity_key": phone.key, "emulated": (), "as_shipped": False}
    gaps = {"artifact": "@a", "wall_ms": [1.0], "device_ms": [2.0], "started_at": "@s", "run": "@r"}
    text = example.model_copy(update={**facts, **where, **gaps}).line().replace("%", "%%")
    for gap in ("@a", "[1.0]", "[2.0]", "@s", "@r"):
        text = text.replace(gap, "%s", 1)
    return text + "\n"


class Cost(NamedTuple):
    """What one process took."""

    seconds: float
    cpu_seconds: float
    megabytes: float
    code: int
    said: str
    """All that it printed."""


def cost(arguments: list[str], checkout: Path, cache: Path, limit_s: float, stdin: str = "") -> Cost:
    """Run Python on these arguments with the modules of a checkout. Memory is the largest resident set."""
    variables = {**os.environ, "PYTHONPATH": str(checkout), "ADRENO_BENCH_CACHE": str(cache)}
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as said:
        given.write(stdin)
        given.seek(0)
        began = time.perf_counter()
        whole = ["timeout", "--signal=KILL", str(limit_s), sys.executable, *arguments]
        process = subprocess.Popen(whole, stdin=given, stdout=said, stderr=said, env=variables, cwd=cache)
        _, status, used = os.wait4(process.pid, 0)
        cpu_s = used.ru_utime + used.ru_stime
        seconds, code = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        said.seek(0)
        return Cost(seconds, cpu_s, used.ru_maxrss / 1000, code, said.read())


def main() -> None:
    """Make the file, run the commands, print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--series", type=int, default=1_000)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--of", type=Path, default=HERE)
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--in", type=Path, dest="folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="record-scale-") as temporary:
        folder = (chosen.folder or Path(temporary)).resolve()
        file, cache = folder / f"records-{chosen.records}-{chosen.series}-{chosen.sessions}.jsonl", folder
        if not file.exists():
            with file.open("w") as stream:
                stream.writelines(lines(chosen.records, chosen.series, chosen.sessions))
        newest = (chosen.records // chosen.series - 1) // chosen.sessions
        wanted = "".join(f"{case_of(n).id} {artifact_of(n, newest)}\n" for n in range(chosen.series))
        rows = {
            "show (makes the index)": ([*COMMAND, "show", "--records", file], ""),
            "show": ([*COMMAND, "show", "--records", file], ""),
            "show CASE": ([*COMMAND, "show", case_of(1).id, "--records", file], ""),
            "bless": ([*COMMAND, "bless", "--records", file], ""),
            "gate --from": ([*COMMAND, "gate", "--from", file], ""),
            "compare": ([*COMMAND, "compare", file, file], ""),
            "start of run --resume": (["-c", RESUME, file, PHONE.key], wanted),
        }
        print(f"{chosen.records} records of {chosen.series} series, {file.stat().st_size / 1e9:.2f} GB")
        for name, (arguments, stdin) in rows.items():
            took = cost([str(word) for word in arguments], chosen.of.resolve(), cache, chosen.limit, stdin)
            print(f"{name:24} {took.seconds:7.1f} s, {took.cpu_seconds:6.1f} s of processor time, ", end="")
            print(f"{took.megabytes:5.0f} MB, exit code {took.code}", flush=True)


if __name__ == "__main__":
    main()
