"""The timing protocol in Python and the one in C, which runs on phones: the same decisions, one by one."""

from __future__ import annotations

import ctypes
import random
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from device_runner import installed_tvm
from device_runner.runtimes.runner.library import SHARED, SOURCES
from harness.bundle.without_python import protocol_of
from harness.cases.plan import Budget
from harness.probes.batches import enqueue
from harness.probes.latency import measure

NOW = ctypes.CFUNCTYPE(ctypes.c_double)
SAMPLE = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_size_t, ctypes.POINTER(ctypes.c_double))
BATCHES = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
TOLD = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_double))


class World(ctypes.Structure):
    """What `timing_driver.c` asks of us."""

    _fields_ = [("now_s", NOW), ("sample", SAMPLE), ("batches", BATCHES), ("told", TOLD)]


@dataclass
class MadeUp:
    """A program whose inferences take known times, in ms, and a note of each thing that is asked of it."""

    times: Iterator[float]
    now_s: float = 0.0
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def wall_ms(self, number: int, *, timeout_s: float = 0.0) -> list[float]:
        return self._took("wall", number)

    def device_ms(self, number: int, *, timeout_s: float = 0.0) -> list[float]:
        return self._took("device", number)

    def _took(self, clock: str, number: int) -> list[float]:
        self.asked.append((clock, number, 1))
        taken = [next(self.times) for _ in range(number)]
        self.now_s += sum(taken) / 1e3
        return taken

    def batches(self, size: int, number: int, *, timeout_s: float = 0.0) -> tuple[list[float], list[float]]:
        self.asked.append(("batches", size, number))
        return [1.0], [1.0]

    def launches(self, number: int, *, timeout_s: float) -> list[list[Any]]:
        return []


Told = dict[str, list[float]]
Run = Callable[[MadeUp, Budget], Told]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("timing")
    includes = [f"-I{place}" for place in (SOURCES, SHARED, *installed_tvm.include_folders("tvm_ffi"))]
    library, source = folder / "timing.so", Path(__file__).with_name("timing_driver.c")
    flags = ["-shared", "-fPIC", "-std=gnu11", "-D_GNU_SOURCE", "-O1", *includes]
    subprocess.run(["gcc", *flags, "-o", str(library), str(source), "-lm"], check=True)
    driver, file = ctypes.CDLL(str(library)), folder / "case.txt"

    def run(program: MadeUp, budget: Budget) -> Told:
        told: Told = {}

        def sample(by_device: int, number: int, into: Any) -> None:
            taken = program.device_ms(number) if by_device else program.wall_ms(number)
            ctypes.memmove(into, (ctypes.c_double * number)(*taken), 8 * number)

        def tell(name: bytes, number: int, values: Any) -> None:
            told[name.decode()] = values[:number]

        def batches(size: int, number: int) -> None:
            program.batches(size, number)

        file.write_text("".join(f"{line}\n" for line in protocol_of(budget)))
        world = World(NOW(lambda: program.now_s), SAMPLE(sample), BATCHES(batches), TOLD(tell))
        driver.time_a_case(str(file).encode(), ctypes.byref(world))
        return told

    return run


def in_python(program: MadeUp, budget: Budget) -> Told:
    made: Any = program
    timing = measure(made, budget, lambda: program.now_s)
    told = {"wall_ms": timing.wall_ms, "inferences": [float(timing.inferences)]}
    if not budget.quick:
        enqueue(made, budget, statistics.median(timing.wall_ms))
        told |= {"device_ms": timing.device_ms, "warm_up_ms": timing.warm_up_ms}
        told["warmed_up"] = [float(timing.warmed_up)]
    return told


@dataclass(frozen=True)
class Pace:
    """What a device's inferences take: slower at first by `rest` of it, half of that after each `half_life`, and noisy.

    In multiples of a power of two, whose sums are exact: Python 3.12 adds up other numbers more exactly than C does.
    """

    ms: float
    rest: float
    half_life: int
    noise: float
    seed: int

    def times(self) -> Iterator[float]:
        chance = random.Random(self.seed)
        for number in count():
            factor = 1 + self.rest * 0.5 ** (number / self.half_life) + self.noise * chance.uniform(-1, 1)
            yield round(self.ms * factor * 4096) / 4096


PACES = st.builds(
    Pace,
    ms=st.sampled_from([0.5, 3.0, 17.5, 170.0, 900.0]),
    rest=st.sampled_from([0.0, 0.3, 2.0]),
    half_life=st.integers(1, 200),
    noise=st.sampled_from([0.0, 0.05, 0.3, 0.9]),
    seed=st.integers(0, 1 << 30),
)
BUDGETS = st.builds(
    Budget,
    seconds=st.floats(0.01, 4) | st.floats(4, 30),
    samples=st.integers(1, 200),
    timeout_s=st.floats(0.1, 300),
    quick=st.integers(0, 19).map(lambda number: number == 7),
)


@settings(max_examples=60, deadline=None)
@given(PACES, BUDGETS)
@example(Pace(0.0, 0, 1, 0, 0), Budget(seconds=0.01))
def test_both_take_the_same_steps_and_keep_the_same_times(in_c: Run, pace: Pace, budget: Budget) -> None:
    one, other = MadeUp(pace.times()), MadeUp(pace.times())
    told = in_c(one, budget)
    told.pop("batch", None)  # it is among what was asked
    assert told == in_python(other, budget)
    assert one.asked == other.asked
