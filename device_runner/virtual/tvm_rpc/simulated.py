"""Inferences that wait and do not compute, so that a few cores can imitate many phones.

Only samples are simulated, and only those of the first library that a session loads: a case's answers are still
computed, and so is the rig's reference kernel, which is loaded after the case.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from device_runner.virtual.faults import Faults

EVALUATOR = "runtime.RPCTimeEvaluator"
"""TVM's function behind `time_evaluator`: what to time, function, device type and index, number, repeat, and more."""


def seconds(injected: Faults, library: str) -> float:
    """How long an inference of the library of this file name waits; it is slowed as its kernels would be."""
    slow = injected.slow_kernels
    factor = slow.factor if slow and fnmatchcase(library, slow.library) else 1.0
    return factor * (injected.simulate_inference_s or 0.0)


def simulate(inference_s: Callable[[], float | None]) -> None:
    """From now on, time an inference by waiting that long; really, while that is None."""
    import tvm_ffi

    real = tvm_ffi.get_global_func(EVALUATOR)

    def evaluator(*arguments: Any) -> Any:
        wait_s = inference_s()
        if wait_s is None:
            return real(*arguments)
        number, repeat = arguments[4:6]
        return tvm_ffi.convert(lambda *_: struct.pack(f"@{repeat}d", *_samples(wait_s, number, repeat)))

    tvm_ffi.register_global_func(EVALUATOR, evaluator, override=True)


def _samples(wait_s: float, number: int, repeat: int) -> Sequence[float]:
    return [_timed(wait_s * number) / number for _ in range(repeat)]


def _timed(wait_s: float) -> float:
    began_s = time.perf_counter()
    time.sleep(wait_s)
    return time.perf_counter() - began_s
