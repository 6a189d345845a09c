"""What watching eight devices costs: processor time of `adreno-bench devices --watch` on a terminal.

    python -m benchmarks.watch_cost [SECONDS]

Eight virtual phones are held, and each comes to another step every second; an adb server answers.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from device_runner.lease import lease, tell
from device_runner.stand_ins.virtual.private_adb import PrivateServer
from device_runner.stand_ins.virtual.processes import Children

DEVICES = 8
STARTED_S = 5.0


def main() -> None:
    """Hold the devices, watch them, print the share."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        cache = Path(folder)
        log = held.enter_context((cache / "adb.log").open("wb"))
        port = PrivateServer(held.enter_context(Children()), cache / "adb", log, tcp=True).address
        names = [f"virtual-{number}" for number in range(1, DEVICES + 1)]
        for name in names:
            held.enter_context(lease(name, cache / "leases", timeout_s=0))
        stop = threading.Event()
        threading.Thread(target=_work, args=(names, cache / "leases", stop), daemon=True).start()
        held.callback(stop.set)
        print(f"{_share(cache, port, seconds):.1%} of a core for watching {DEVICES} devices, over {seconds:g} s")


def _work(names: list[str], leases: Path, stop: threading.Event) -> None:
    """Let every device come to another step each second."""
    step = 0
    while not stop.wait(1.0):
        step += 1
        for name in names:
            tell(name, leases, "mobilenet_v1-texture-float32-untuned", f"step {step}")


def _share(cache: Path, port: object, seconds: float) -> float:
    environment = {**os.environ, "ADRENO_BENCH_CACHE": str(cache), "ANDROID_ADB_SERVER_PORT": str(port)}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from harness.cli import main; main()", "devices", "--watch"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as watching:
        os.close(theirs)
        threading.Thread(target=_drain, args=(ours,), daemon=True).start()
        try:
            time.sleep(STARTED_S)
            process = psutil.Process(watching.pid)
            before = process.cpu_times()
            time.sleep(seconds)
            after = process.cpu_times()
        finally:
            watching.terminate()
    return (after.user + after.system - before.user - before.system) / seconds


def _drain(terminal: int) -> None:
    with suppress(OSError):  # the other end is closed
        while os.read(terminal, 65536):
            pass


if __name__ == "__main__":
    main()
