"""Inferences that wait and do not compute, so that a few cores can imitate many phones.

Only samples are simulated, and only those of the first library that a session loads: a case's answers are still
computed, and so is the rig's reference kernel, which is loaded after the case.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from random import gauss
from typing import Any

from device_runner.virtual.faults import Faults
from device_runner.virtual.tvm_rpc.clocked import ClockedGpu
from device_runner.virtual.tvm_rpc.kernel_faults import concerns

NOISE = 0.005
"""Standard deviation of samples, relative: no device shows the same time twice."""
EVALUATOR = "runtime.RPCTimeEvaluator"
"""TVM's function behind `time_evaluator`: what to time, function, device type and index, number, repeat, and more."""


def seconds(injected: Faults, library: str) -> float:
    """How long an inference of the library of this file name waits; it is slowed as its kernels would be."""
    factor = next((slow.factor for slow in injected.slow_kernels if concerns(slow, library)), 1.0)
    return factor * (injected.simulate_inference_s or 0.0)


def simulate(inference_s: Callable[[], float | None], gpu: ClockedGpu | None = None) -> None:
    """From now on, time an inference by waiting that long; really, while that is None. `gpu` sets the pace of both."""
    import tvm_ffi

    real = tvm_ffi.get_global_func(EVALUATOR)

    def evaluator(*arguments: Any) -> Any:
        wait_s, (number, repeat) = inference_s(), arguments[4:6]
        if wait_s is None:
            timed = real(*arguments)
            return tvm_ffi.convert(gpu.stretched(timed, number)) if gpu else timed
        return tvm_ffi.convert(
            lambda *_: struct.pack(f"@{repeat}d", *(_sample(wait_s, number, gpu) for _ in range(repeat)))
        )

    tvm_ffi.register_global_func(EVALUATOR, evaluator, override=True)


def _sample(wait_s: float, number: int, gpu: ClockedGpu | None) -> float:
    """Wait as long as `number` inferences take, and tell how long one took by a clock that is simulated as well.

    The host's would show how busy the host is, and waiters wake late on one that is.
    """
    inference_s = wait_s * max(0.5, gauss(1.0, NOISE)) * (gpu.slowdown if gpu else 1.0)
    (gpu.wait if gpu else time.sleep)(number * inference_s)
    return inference_s
