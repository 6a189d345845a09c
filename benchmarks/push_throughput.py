"""How fast our push is beside `adb push`, on the virtual device, interleaved in one run.

Prints the median of each and their ratio, and what a push of an unchanged file costs beside a bare shell round trip.

    python -m benchmarks.push_throughput [MEGABYTES] [ROUNDS]

Goal: at least 0.8 of the speed of `adb push`.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from device_runner.adb_device import AdbTransport
from device_runner.virtual import VirtualPhone, virtual_phone

TIMEOUT_S = 60.0


def main(megabytes: int = 100, rounds: int = 9) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, virtual_phone(Path(folder) / "phone") as phone:
        transport = AdbTransport(phone.serial, phone.adb_port, phone.root)
        file = Path(folder) / "file.so"
        times: dict[str, list[float]] = {"adb push": [], "our push": [], "unchanged": [], "`true` in a shell": []}
        for _ in range(rounds):
            content = os.urandom(megabytes * 1_000_000)
            file.write_bytes(content)
            push = partial(transport.push, file, hashlib.sha256(content).hexdigest(), timeout_s=TIMEOUT_S)
            times["adb push"].append(_seconds(lambda: _adb_push(phone, file)))
            times["our push"].append(_seconds(push))
            times["unchanged"].append(_seconds(push))
            times["`true` in a shell"].append(_seconds(lambda: transport.shell(["true"], timeout_s=TIMEOUT_S)))
            transport.shell(["rm", "-r", f"{phone.root}/files"], timeout_s=TIMEOUT_S)
    for what, seconds in times.items():
        spread = f"{min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f}"
        print(f"{what:18} median {statistics.median(seconds) * 1e3:.1f} ms ({spread})")
    ratios = [theirs / ours for theirs, ours in zip(times["adb push"], times["our push"], strict=True)]
    print(f"speed of our push over adb's, median of {rounds} rounds: {statistics.median(ratios):.2f} (goal: 0.8)")


def _adb_push(phone: VirtualPhone, file: Path) -> None:
    from adbutils import adb_path

    command = [adb_path(), "-P", str(phone.adb_port), "-s", phone.serial, "push", str(file), f"{phone.root}/theirs.so"]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
