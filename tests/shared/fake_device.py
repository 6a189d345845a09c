"""A device made of plain Python, and a case that is built: the whole way can be tested without a process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from device_runner.device import (
    Identity,
    Launch,
    Loadable,
    PeakMemory,
    Pulse,
    PushResult,
    Rung,
    Steadiness,
    T,
    ThermalLimits,
    Toggles,
)
from device_runner.failures import Failure
from harness.base.case import Case, Precision
from harness.base.plan import Budget, Job, Plan
from harness.compile.artifacts.artifact import (
    INPUTS,
    OTHER_OUTPUTS,
    OUTPUTS,
    Answers,
    Artifact,
    CompileResult,
    save_arrays,
)

Things = dict[str, Artifact | Answers | Failure]

ANSWER = np.array([[1.0, 2.0, 3.0]], np.float32)


@dataclass
class FakeProgram:
    device: FakeDevice
    init_ms: float = 7.0
    pushed: PushResult = field(default_factory=lambda: PushResult("/data/local/tmp/x.so", 123))
    inputs: Sequence[Any] = ()
    inferences: int = 0

    def run(self, inputs: Sequence[Any], *, timeout_s: float) -> tuple[list[Any], float]:
        self.device.met("run")
        self.inputs = inputs
        self.inferences += 1
        later = self.device.later_error if self.inferences > self.device.right_runs else 0.0
        return [ANSWER + self.device.error + later, *self.device.more_outputs], 11.0

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.device.met("wall")
        self.inferences += repeat
        return [2.0] * repeat

    def timed_answer(self, *, timeout_s: float) -> list[Any]:
        later = self.device.later_error if self.inferences > self.device.right_runs else 0.0
        return [ANSWER + self.device.error + later, *self.device.more_outputs]

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.device.met("device")
        return [self.device.kernels_ms(self.inputs)] * repeat

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        self.device.met("batches")
        return [1.6] * repeat, [1.9] * repeat

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        self.device.met("launches")
        one = Launch("fused_conv2d_kernel", (64, 1, 1), (16, 1, 1), 0, 10, 100, 1_500_100)
        return [[one]] * repeat

    def binaries(self, *, timeout_s: float) -> bytes:
        self.device.met("binaries")
        return b"programs"

    def use_binaries(self, blob: bytes, *, timeout_s: float) -> None:
        assert blob == b"programs"
        self.device.met("use binaries")


@dataclass
class FakeSession:
    device: FakeDevice
    toggles: Toggles

    def load(self, loadable: Loadable, *, timeout_s: float) -> FakeProgram:
        self.device.met("load")
        return FakeProgram(self.device)

    def call(self, function: str, *, timeout_s: float) -> Any:
        return self.device.tells.get(function)

    def peak_memory(self, *, timeout_s: float) -> PeakMemory:
        return self.device.memory

    def program_counts(self, *, timeout_s: float) -> Mapping[str, int]:
        return self.device.counts

    def download(self, path: str, *, timeout_s: float) -> bytes:
        return self.device.files[path]

    def log(self) -> str:
        return self.device.log(self.toggles)


@dataclass
class FakeDevice:
    """Does what it is told to, at the step it is told to."""

    fails: dict[str, BaseException] = field(default_factory=dict)
    error: float = 0.0
    later_error: float = 0.0
    """Error of the answers after so many inferences."""
    right_runs: int = 0
    more_outputs: Sequence[Any] = ()
    """Outputs after the first."""
    name: str = "fake"
    identity: Identity = field(
        default_factory=lambda: Identity("virtual", "fake", gpu="G", extensions=("cl_khr_icd",), emulated=("gpu",))
    )
    steps: list[str] = field(default_factory=list)
    tells: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    memory: PeakMemory = field(default_factory=PeakMemory)
    files: dict[str, bytes] = field(default_factory=dict)
    log: Callable[[Toggles], str] = lambda toggles: ""
    steadiness: Steadiness = field(default_factory=Steadiness)
    pulse: Pulse = field(default_factory=Pulse)
    rungs: Sequence[Rung] = ()

    def met(self, step: str) -> None:
        self.steps.append(step)
        if step in self.fails:
            raise self.fails[step]

    def kernels_ms(self, inputs: Sequence[Any]) -> float:
        return 1.5

    @contextlib.contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[FakeSession]:
        self.met("session")
        try:
            yield FakeSession(self, toggles)
        finally:
            self.steps.append("closed")

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        return PushResult(f"/device/{sha256}", 0)

    def prune(self, older_than_s: float) -> int:
        return 0

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[str]:
        yield f"/device/{name}"

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        return work(), self.steadiness

    def pulses(self, limits: ThermalLimits) -> Callable[[], Pulse]:
        def pulse() -> Pulse:
            self.met("look")
            return self.pulse

        return pulse


def a_plan(name: str = "tiny", precision: Precision = Precision.FLOAT32) -> Plan:
    return Plan(
        case=Case(name, "opencl", precision),
        compile=Job("compile", f"c-{name}", name, {}),
        oracle=Job("oracle", f"o-{name}", name, {}),
        quirks=("some-quirk",),
        relative_tolerance=1e-3,
        budget=Budget(seconds=0.01),
    )


def things(folder: Path) -> Things:
    """The artifact of `a_plan`, and the oracle's answers to it, as if they had been built."""
    folder.mkdir(exist_ok=True)
    save_arrays(folder / INPUTS, [np.zeros((1, 3), np.float32)])
    save_arrays(folder / OUTPUTS, [ANSWER])
    save_arrays(folder / OTHER_OUTPUTS, [ANSWER * 2])
    compiled = CompileResult("lib.so", 1, [("x", [1, 3], "float32")], 1, ["some-quirk"], {"kernels": 4}, 1.25)
    artifact = Artifact("c-tiny", Loadable(folder / "lib.so", "00", 1), compiled, 999, reused=False)
    return {"c-tiny": artifact, "o-tiny": Answers(folder, reused=True)}
