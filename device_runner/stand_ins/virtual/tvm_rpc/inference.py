"""What the phone makes of inferences: they follow the GPU's clock, wait instead of computing, or have a faulty kernel.

With a clock they are counted as work that warms the GPU (`virtual.heat`). Of simulated ones, only samples are
simulated, and only those of the first library that a session loads: a case's answers are still computed, also the one
that is left when samples were taken, and so is the rig's reference kernel, which is loaded after the case. Faults of
kernels are handed to our OpenCL runtime by its environment (src/fault.h), which it reads whenever a module with kernels
is loaded.
"""

from __future__ import annotations

import logging
import os
import struct
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from random import gauss
from typing import Any

from device_runner.stand_ins.virtual.faults import Faults, Kernels

BUSY_FILE = "data/misc/gpu_busy_us"
"""File in which programs on the phone count their GPU time, in microseconds."""

SLICE_S = 0.05
"""Work is told of at least as often."""


class ClockedGpu:
    """The phone's GPU: its clock, and for how long it was busy."""

    def __init__(self) -> None:
        root = Path(os.environ.get("ANDROID_ROOT", "/system")).parent
        self._nodes = root / "sys/class/kgsl/kgsl-3d0"
        busy = root / BUSY_FILE
        busy.parent.mkdir(exist_ok=True)
        self._file = os.open(busy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._busy_us = 0.0

    @property
    def slowdown(self) -> float:
        """How much longer than at its fastest clock everything takes; 1 if the phone does not say."""
        try:
            fastest = max(map(int, (self._nodes / "freq_table_mhz").read_text().split()))
            return fastest / int((self._nodes / "max_clock_mhz").read_text())
        except (OSError, ValueError, ZeroDivisionError):
            return 1.0

    def wait(self, seconds: float) -> None:
        """Wait in place of computing. The whole wait counts as work, also what this host adds by waking us late."""
        began_s = time.monotonic()
        while seconds > 0:
            time.sleep(min(SLICE_S, seconds))
            seconds -= SLICE_S
            self.worked(-began_s + (began_s := time.monotonic()))

    def worked(self, seconds: float) -> None:
        """Count GPU time."""
        self._busy_us += 1e6 * seconds
        os.pwrite(self._file, b"%020d\n" % int(self._busy_us), 0)

    def stretched(self, timed: Callable[..., Any], number: int) -> Callable[..., bytes]:
        """Return a function that times `number` inferences to a sample, slowed as the clock is then."""

        def call(*arguments: Any) -> bytes:
            data = bytes(timed(*arguments))
            samples = struct.unpack(f"@{len(data) // 8}d", data)
            slowdown, spent_s = self.slowdown, number * sum(samples)
            self.worked(spent_s)
            self.wait((slowdown - 1) * spent_s)
            return struct.pack(f"@{len(samples)}d", *(slowdown * sample for sample in samples))

        return call


NOISE = 0.005
"""Standard deviation of samples, relative: no device shows the same time twice."""
EVALUATOR = "runtime.RPCTimeEvaluator"
"""TVM's function behind `time_evaluator`: what to time, function, device type and index, number, repeat, and more."""


def seconds(injected: Faults, library: str) -> float:
    """Return how long an inference of the library of this file name waits; it is slowed as its kernels would be."""
    factor = next((slow.factor for slow in injected.slow_kernels if concerns(slow, library)), 1.0)
    return factor * (injected.simulate_inference_s or 0.0)


def simulate(inference_s: Callable[[], float | None], gpu: ClockedGpu | None = None) -> None:
    """Simulate inferences by waiting this long; run them while it is None. `gpu` sets the pace of both."""
    import tvm_ffi

    real = tvm_ffi.get_global_func(EVALUATOR)

    def evaluator(*arguments: Any) -> Any:
        wait_s, (number, repeat) = inference_s(), arguments[4:6]
        if wait_s is None:
            timed = real(*arguments)
            return tvm_ffi.convert(gpu.stretched(timed, number)) if gpu else timed
        once = real(*arguments[:4], 1, 1, *arguments[6:])

        def waited(*inputs: Any) -> bytes:
            if arguments[2] == tvm_ffi.DLDeviceType.kDLCPU:  # of the GPU's timer, probes count the launches
                once(*inputs)
            return struct.pack(f"@{repeat}d", *(_sample(wait_s, number, gpu) for _ in range(repeat)))

        return tvm_ffi.convert(waited)

    tvm_ffi.register_global_func(EVALUATOR, evaluator, override=True)


def _sample(wait_s: float, number: int, gpu: ClockedGpu | None) -> float:
    """Wait as long as `number` inferences take, and tell how long one took by a clock that is simulated as well.

    The host's would show how busy the host is, and waiters wake late on one that is.
    """
    inference_s = wait_s * max(0.5, gauss(1.0, NOISE)) * (gpu.slowdown if gpu else 1.0)
    (gpu.wait if gpu else time.sleep)(number * inference_s)
    return inference_s


SLOW = "ADRENO_BENCH_SLOW_KERNELS"
HANG = "ADRENO_BENCH_HANG_KERNELS"
FAILING = "ADRENO_BENCH_FAILING_KERNELS"
RESETS = "ADRENO_BENCH_GPU_RESETS"
RESET_COUNT = f"{os.environ.get('ANDROID_ROOT', '/system')}/../sys/class/kgsl/kgsl-3d0/reset_count"

log = logging.getLogger("tvm_rpc")


def spoil_kernels(injected: Faults, library: str) -> None:
    """Let the kernels of the library of this file name, which is loaded next, be as the faults say."""
    slow = [slow for slow in injected.slow_kernels if concerns(slow, library)]
    hang = [hang for hang in (injected.hang_kernels,) if hang and concerns(hang, library)]
    _inject(SLOW, " ".join(f"{s.factor!r} {s.least_s!r} {s.kernel}" for s in slow), library)
    failing = [failing for failing in injected.failing_kernels if concerns(failing, library)]
    _inject(FAILING, " ".join(f"{f.code} {f.kernel}" for f in failing), library)
    _inject(HANG, " ".join(h.kernel for h in hang), library)
    if any(mishap.what == "reset_gpu" for mishap in injected.mishaps):
        os.environ[RESETS] = RESET_COUNT


def concerns(kernels: Kernels, library: str) -> bool:
    """Return whether a fault is about the library of this file name."""
    return fnmatchcase(library, kernels.library)


def _inject(variable: str, value: str, library: str) -> None:
    if value:
        log.warning("injected into %s: %s=%s", library, variable, value)
        os.environ[variable] = value
    else:
        os.environ.pop(variable, None)
