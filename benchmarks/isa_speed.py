"""What compiling a network's kernels for Adreno costs: cold, again, and for three GPUs at a time.

    adreno-bench build --device none --case CASE
    python -m benchmarks.isa_speed [CASE] [--set-up]

Prints processor time, ours and that of all that was started, because a machine may be busy with other things, and the
time on the clock beside it. `--set-up` downloads and unpacks the compiler into a folder of its own, and times that.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from device_runner.store import Store, cache_root
from harness.base.tables import markdown_table
from harness.compile.artifacts.artifact import KERNELS
from harness.measure.progress import SilentProgress
from harness.measure.workbench import Request
from harness.tools.isa.kernels import compile_kernels
from harness.tools.isa.record import build_only
from harness.tools.isa.runner import sources
from harness.tools.isa.toolchain import need, set_up

CASE = "resnet18-texture-float32-untuned"
GPUS = ("a630", "a740", "a750")
NO_DEVICE = "none"
LOOK_EVERY_S = 0.05


def main(case: str, *, with_set_up: bool) -> None:
    """Measure and print."""
    (built,) = build_only(Request.read(Path("adreno-bench.toml"), [case]), NO_DEVICE, SilentProgress())
    folder = Store(cache_root(), "artifacts").find(built.artifact)
    if folder is None:
        raise SystemExit(f"{case} was not built: {built.result}")
    kernels, toolchain = sources((folder / KERNELS).read_text(encoding="utf-8")), need(cache_root())
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        cold, three = Path(scratch) / "cold", Path(scratch) / "three"
        rows.append(("one GPU, nothing kept", *_timed(lambda: compile_kernels(toolchain, cold, kernels, GPUS[:1]))))
        rows.append(("the same again", *_timed(lambda: compile_kernels(toolchain, cold, kernels, GPUS[:1]))))
        rows.append(("three GPUs, nothing kept", *_timed(lambda: compile_kernels(toolchain, three, kernels, GPUS))))
        if with_set_up:
            rows.append(("set-up", *_timed(lambda: set_up(Path(scratch) / "set-up"))))
    print(f"{case}: {len(kernels)} kernels, {toolchain.identity}\n")
    print(markdown_table(rows, ("what", "processor s", "on the clock s", "load")))


def _timed(work: Callable[[], object]) -> tuple[str, str, str]:
    began, before = time.monotonic(), time.process_time()
    with Watch() as watch:
        work()
    spent = time.process_time() - before + watch.seconds
    return f"{spent:.1f}", f"{time.monotonic() - began:.1f}", f"{os.getloadavg()[0]:.1f}"


class Watch(threading.Thread):
    """Adds up the processor time of all processes below this one: a sandbox hides it from those who wait for it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._seen: dict[tuple[int, float], float] = {}
        self._ended = threading.Event()

    @property
    def seconds(self) -> float:
        """Of all that were seen, as they were last seen: up to `LOOK_EVERY_S` of each is missed."""
        return sum(self._seen.values())

    def run(self) -> None:
        """Look, until it is over."""
        me = psutil.Process()
        while not self._ended.wait(LOOK_EVERY_S):
            for child in me.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    used = child.cpu_times()
                    self._seen[child.pid, child.create_time()] = used.user + used.system

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", default=CASE)
    parser.add_argument("--set-up", action="store_true")
    asked = parser.parse_args()
    main(asked.case, with_set_up=asked.set_up)
