"""How fast our push is beside `adb push`, on the virtual device, interleaved in one run.

    python -m benchmarks.push_throughput [MEGABYTES] [ROUNDS]

Goal: at least 0.8 of the speed of `adb push`. Also the comparison of a file that is there, which is one round trip: at
first it hashes the file on the device, later not; beside a bare round trip.
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

from device_runner.stand_ins.virtual import VirtualPhone, virtual_phone
from device_runner.transport.adb_transport import AdbTransport

TIMEOUT_S = 60.0


def main(megabytes: int = 100, rounds: int = 12) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, virtual_phone(Path(folder) / "phone", adb_by_tcp=True) as phone:
        transport = AdbTransport(phone.serial, phone.adb_server, phone.root)
        file = Path(folder) / "file.so"
        times: dict[str, list[float]] = {"adb push": [], "our push": [], "hashed": [], "unchanged": [], "`true`": []}
        for number in range(rounds):
            content = os.urandom(megabytes * 1_000_000)
            file.write_bytes(content)
            push = partial(transport.push, file, hashlib.sha256(content).hexdigest(), timeout_s=TIMEOUT_S)
            contenders: list[tuple[str, Callable[[], object]]] = [
                ("adb push", partial(_adb_push, phone, file)),
                ("our push", push),
            ]
            for what, action in contenders if number % 2 else reversed(contenders):  # going first is not the same
                times[what].append(_seconds(action))
            times["hashed"].append(_seconds(push))
            times["unchanged"].append(_seconds(push))
            times["`true`"].append(_seconds(partial(transport.shell, ["true"], timeout_s=TIMEOUT_S)))
            transport.shell(["rm", "-r", f"{phone.root}/files", f"{phone.root}/theirs.so"], timeout_s=TIMEOUT_S)
    for what, seconds in times.items():
        spread = f"{min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f}"
        print(f"{what:10} median {statistics.median(seconds) * 1e3:.1f} ms ({spread})")
    ratios = [theirs / ours for theirs, ours in zip(times["adb push"], times["our push"], strict=True)]
    print(f"speed of our push over adb's, median of {rounds} rounds: {statistics.median(ratios):.2f} (goal: 0.8)")


def _adb_push(phone: VirtualPhone, file: Path) -> None:
    from adbutils import adb_path

    command = [
        adb_path(),
        "-P",
        str(phone.adb_server),
        "-s",
        phone.serial,
        "push",
        str(file),
        f"{phone.root}/theirs.so",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
