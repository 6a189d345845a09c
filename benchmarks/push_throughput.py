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


def main(megabytes: int = 100, rounds: int = 7) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, virtual_phone(Path(folder) / "phone") as phone:
        transport = AdbTransport(phone.serial, phone.adb_port, phone.root)
        file = Path(folder) / "file.so"
        theirs: list[float] = []
        ours: list[float] = []
        again: list[float] = []
        bare: list[float] = []
        for _ in range(rounds):
            content = os.urandom(megabytes * 1_000_000)
            file.write_bytes(content)
            push = partial(transport.push, file, hashlib.sha256(content).hexdigest(), timeout_s=TIMEOUT_S)
            theirs.append(_seconds(lambda: _adb_push(phone, file)))
            ours.append(_seconds(push))
            again.append(_seconds(push))
            bare.append(_seconds(lambda: transport.shell(["true"], timeout_s=TIMEOUT_S)))
            transport.shell(["rm", "-r", f"{phone.root}/files"], timeout_s=TIMEOUT_S)
        _report("adb push", theirs, megabytes)
        _report("our push, verified on the device", ours, megabytes)
        print(f"ratio of speeds: {statistics.median(theirs) / statistics.median(ours):.2f}")
        print(
            f"push of the unchanged file: {statistics.median(again) * 1e3:.1f} ms (one round trip that hashes it there)"
        )
        print(f"bare round trip: {statistics.median(bare) * 1e3:.1f} ms")


def _adb_push(phone: VirtualPhone, file: Path) -> None:
    from adbutils import adb_path

    command = [adb_path(), "-P", str(phone.adb_port), "-s", phone.serial, "push", str(file), f"{phone.root}/theirs.so"]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _report(what: str, seconds: list[float], megabytes: int) -> None:
    median = statistics.median(seconds)
    print(f"{what}: {median:.3f} s ({min(seconds):.3f}-{max(seconds):.3f}), {megabytes / median:.0f} MB/s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
