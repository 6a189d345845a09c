"""The runner of bundles times by the numbers of the turn's file, which are those of `harness.measure.probes`."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pytest

from device_runner import installed_tvm
from device_runner.installed_tvm import package_folder
from device_runner.stand_ins.host_gpu import GpuReading, reading_in
from harness.base.plan import Budget
from harness.measure.probes import batches, latency
from harness.tools.bundle.runner import RUNNER
from harness.tools.bundle.runner import program as runner
from harness.tools.bundle.turn_files import protocol_of

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

    def wall_ms(self, number: int) -> list[float]:
        return self._took("wall", number)

    def device_ms(self, number: int) -> list[float]:
        return self._took("device", number)

    def _took(self, clock: str, number: int) -> list[float]:
        self.asked.append((clock, number, 1))
        taken = [next(self.times) for _ in range(number)]
        self.now_s += sum(taken) / 1e3
        return taken

    def batches(self, size: int, number: int) -> None:
        self.asked.append(("batches", size, number))


Told = dict[str, list[float]]
Run = Callable[[MadeUp, Mapping[str, float]], Told]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("timing")
    includes = [f"-I{place}" for place in (*RUNNER.sources, *installed_tvm.include_folders("tvm_ffi"))]
    library, source = folder / "timing.so", Path(__file__).with_name("timing_driver.c")
    flags = ["-shared", "-fPIC", "-std=gnu11", "-D_GNU_SOURCE", "-O1", *includes]
    subprocess.run(["gcc", *flags, "-o", str(library), str(source), "-lm"], check=True)
    driver, file = ctypes.CDLL(str(library)), folder / "case.txt"

    def run(program: MadeUp, changes: Mapping[str, float]) -> Told:
        told: Told = {}

        def sample(by_device: int, number: int, into: Any) -> None:
            taken = program.device_ms(number) if by_device else program.wall_ms(number)
            ctypes.memmove(into, (ctypes.c_double * number)(*taken), 8 * number)

        def tell(name: bytes, number: int, values: Any) -> None:
            told[name.decode()] = values[:number]

        def batches(size: int, number: int) -> None:
            program.batches(size, number)

        lines = [*protocol_of(Budget(seconds=8.0, samples=30)), *(f"{name} {value}" for name, value in changes.items())]
        file.write_text("".join(f"{line}\n" for line in lines))
        world = World(NOW(lambda: program.now_s), SAMPLE(sample), BATCHES(batches), TOLD(tell))
        driver.time_a_case(str(file).encode(), ctypes.byref(world))
        return told

    return run


def resting(ms: float, slower: float, inferences: int) -> Iterator[float]:
    """So many inferences that are slower, then all alike."""
    return chain(repeat(ms * slower, inferences), repeat(ms))


def test_each_number_of_the_protocol_comes_from_the_host() -> None:
    numbers = re.findall(r"NUMBER\((\w+)\)", (RUNNER.sources[0] / "case.h").read_text())
    given = [line.split()[0] for line in protocol_of(Budget())]
    assert sorted(set(numbers) - {"name", "NUMBER"}) == sorted(given)


def test_it_warms_up_until_times_are_steady_and_samples_both_clocks(in_c: Run) -> None:
    program = MadeUp(resting(10.0, 3.0, 10))
    told = in_c(program, {})
    clocks = [(clock, sum(n for which, n, _ in program.asked if which == clock)) for clock in ("wall", "device")]
    assert told["warmed_up"] == [1.0]
    assert set(told["wall_ms"]) == {10.0}
    assert (len(told["wall_ms"]), told["inferences"]) == (30, [200.0])  # two seconds of them
    assert len(told["warm_up_ms"]) == latency.WARM_UP_KEPT
    assert clocks[1] == ("device", latency.FEWEST_SAMPLES)
    assert program.asked[-1] == ("batches", round(told["batch"][0]), batches.REPEAT)
    assert told["batch"] == [8.0]  # a tenth of 8 s for 2 kinds of 5 batches of 10 ms


@pytest.mark.parametrize(
    ("changes", "told_of", "count"),
    [
        ({"samples": 12}, "wall_ms", 12),
        ({"samples": 1, "fewest": 11}, "wall_ms", 11),
        ({"warm_up_kept": 7}, "warm_up_ms", 7),
        ({"quick": 1, "quick_samples": 5}, "wall_ms", 5),
        ({"seconds": 0.01, "fewest_device": 4}, "device_ms", 4),
        ({"seconds": 0.01, "fewest": 13}, "wall_ms", 13),
    ],
)
def test_it_obeys_the_numbers(in_c: Run, changes: Mapping[str, float], told_of: str, count: int) -> None:
    assert len(in_c(MadeUp(resting(10.0, 1.0, 0)), changes)[told_of]) == count


def test_a_restless_device_has_its_share_of_the_budget_and_no_more(in_c: Run) -> None:
    slower = (10.0 * 1.01**number for number in count())
    assert in_c(MadeUp(slower), {"agree_within": 0.001, "warm_up_share": 0.5})["warmed_up"] == [0.0]
    assert in_c(MadeUp(resting(1000.0, 1.0, 0)), {}).get("batch") is None  # there is no time for any


def test_a_line_that_it_does_not_know_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "case.txt"
    file.write_text("steady_hours 3\n")
    told = printed(tmp_path, "turn", str(file), str(tmp_path / "log"), str(tmp_path))
    assert told.strip() == '"broken": "the turn\'s file has a line that this runner does not know: steady_hours"'


def printed(folder: Path, *words: str) -> str:
    """What the runner prints, with a folder to look for libraries in."""
    return subprocess.run(
        [str(runner(folder, platform.machine())), *words],
        env={"LD_LIBRARY_PATH": f"{folder}:{package_folder('tvm_ffi') / 'lib'}"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout


NVML = """
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 2, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) { return *gpu = index ? "NVIDIA H200" : "Other", 0; }
int nvmlDeviceGetName(void* gpu, char* name, unsigned size) { return strncpy(name, gpu, size), 0; }
int nvmlDeviceGetClockInfo(void* gpu, int kind, unsigned* mhz) { return *mhz = kind == 1 ? 1980 : 0, 0; }
int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* c) { return 3; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void* gpu, unsigned long long* reasons) { return *reasons = 0x44, 0; }
int nvmlDeviceGetViolationStatus(void* gpu, int policy, unsigned long long* ns) { return ns[1] = 7000000, 0; }
"""
"""NVIDIA's management library, which refuses the temperature, and has no function for the power."""


def test_it_reads_nvidias_library_where_there_is_one(tmp_path: Path) -> None:
    assert printed(tmp_path, "gpus") == ""
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(library), str(tmp_path / "nvml.c")], check=True)
    found = reading_in({"gpus": printed(tmp_path, "gpus")}, "NVIDIA H200")
    assert found == GpuReading(clock_mhz=1980, slowed=("heat (hardware)",), slowed_ms=7.0, capped=True)
