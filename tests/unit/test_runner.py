"""One case, from plan to record, on a device made of plain Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_runner.device import Identity, Loadable, Pushed, Toggles
from device_runner.failures import DeviceCrash, DeviceLost, Failure, Hang, KernelBuildFailure, RigFailure
from harness.build import Answers, Artifact, Builder, Job
from harness.case import Case, Precision
from harness.compile import Compiled
from harness.failures import CompilerCrash
from harness.measure import FEWEST_SAMPLES, Budget
from harness.oracle import INPUTS, OUTPUTS
from harness.outcome import Outcome
from harness.plan import Plan
from harness.progress import Silent
from harness.record import Record, RecordFile
from harness.runner import Built, Run, missing, run_case, run_suite

ANSWER = np.array([[1.0, 2.0, 3.0]], np.float32)


@dataclass
class FakeProgram:
    device: FakeDevice
    init_ms: float = 7.0
    pushed: Pushed = field(default_factory=lambda: Pushed("/data/local/tmp/x.so", 123))

    def run(self, inputs: Sequence[Any], *, timeout_s: float) -> tuple[list[Any], float]:
        self.device.met("run")
        return [ANSWER + self.device.error], 11.0

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.device.met("wall")
        return [2.0] * repeat

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.device.met("device")
        return [1.5] * repeat


@dataclass
class FakeSession:
    device: FakeDevice
    toggles: Toggles

    def load(self, loadable: Loadable, *, timeout_s: float) -> FakeProgram:
        self.device.met("load")
        return FakeProgram(self.device)

    def log(self) -> str:
        return ""


@dataclass
class FakeDevice:
    """Does what it is told to, at the step it is told to."""

    fails: dict[str, BaseException] = field(default_factory=dict)
    error: float = 0.0
    name: str = "fake"
    identity: Identity = field(default_factory=lambda: Identity("virtual", "fake", gpu="G", emulated=("gpu",)))
    steps: list[str] = field(default_factory=list)

    def met(self, step: str) -> None:
        self.steps.append(step)
        if step in self.fails:
            raise self.fails[step]

    @contextlib.contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[FakeSession]:
        self.met("session")
        try:
            yield FakeSession(self, toggles)
        finally:
            self.steps.append("closed")

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> Pushed:
        return Pushed("", 0)


def a_plan(name: str = "tiny", precision: Precision = Precision.FLOAT32) -> Plan:
    return Plan(
        case=Case(name, "opencl", precision),
        compile=Job("compile", f"c-{name}", name, {}),
        oracle=Job("oracle", f"o-{name}", name, {}),
        quirks=("some-quirk",),
        relative_tolerance=1e-3,
        budget=Budget(seconds=0.01),
        toggles={},
    )


@pytest.fixture
def built(tmp_path: Path) -> dict[str, Artifact | Answers | Failure]:
    np.savez(tmp_path / INPUTS, **{"000": np.zeros((1, 3), np.float32)})
    np.savez(tmp_path / OUTPUTS, **{"000": ANSWER})
    compiled = Compiled("lib.so", 1, [("x", [1, 3], "float32")], 1, ["some-quirk"], {"kernels": 4}, 1.25)
    artifact = Artifact("c-tiny", Loadable(tmp_path / "lib.so", "00", 1), compiled, 999, reused=False)
    return {"c-tiny": artifact, "o-tiny": Answers(tmp_path, reused=True)}


def run(device: FakeDevice, built: Built, plan: Plan | None = None) -> Record:
    return run_case(plan or a_plan(), built, Run(device), Silent())


def test_a_right_case_is_measured_and_its_record_tells_all(built: Built) -> None:
    record = run(FakeDevice(), built)
    assert record.outcome is Outcome.OK
    assert len(record.wall_ms) >= FEWEST_SAMPLES
    assert set(record.device_ms) == {1.5}
    assert (record.init_ms, record.first_run_ms, record.max_abs_err) == (7.0, 11.0, 0.0)
    assert (record.library_bytes, record.compile_s, record.facts) == (999, 1.25, {"kernels": 4})
    assert record.quirks == ("some-quirk",)
    assert record.emulated == ("gpu",)
    assert record.sent_bytes == 123


def test_a_wrong_answer_gets_no_latency(built: Built) -> None:
    device = FakeDevice(error=0.5)
    record = run(device, built)
    assert record.outcome is Outcome.WRONG_RESULT
    assert record.wall_ms == record.device_ms == []
    assert record.max_abs_err == pytest.approx(0.5)
    assert record.message.startswith("output 0 is off by 0.5")
    assert "wall" not in device.steps


@pytest.mark.parametrize(
    ("step", "error", "outcome"),
    [
        ("session", DeviceLost("gone"), Outcome.DEVICE_LOST),
        ("session", RigFailure("no adb"), Outcome.INFRA_ERROR),
        ("load", DeviceCrash("died"), Outcome.DEVICE_CRASH),
        ("run", KernelBuildFailure("bad kernel", evidence="log"), Outcome.KERNEL_BUILD_ERROR),
        ("wall", Hang("no answer"), Outcome.HANG),
        ("device", DeviceLost("unplugged"), Outcome.DEVICE_LOST),
        ("run", ZeroDivisionError("ours"), Outcome.INFRA_ERROR),
    ],
)
def test_whatever_breaks_becomes_its_outcome_and_the_session_is_closed(
    built: Built, step: str, error: Exception, outcome: Outcome
) -> None:
    device = FakeDevice(fails={step: error})
    record = run(device, built)
    assert record.outcome is outcome
    assert record.message
    assert record.wall_ms == record.device_ms == []
    assert device.steps[-1] == ("session" if step == "session" else "closed")


def test_a_fault_of_ours_is_told_with_its_traceback(built: Built) -> None:
    record = run(FakeDevice(fails={"run": ZeroDivisionError("ours")}), built)
    assert "ZeroDivisionError: ours" in record.message
    assert "Traceback" in record.evidence


def test_ctrl_c_gives_no_outcome(built: Built) -> None:
    device = FakeDevice(fails={"wall": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(device, built)
    assert device.steps[-1] == "closed"


def test_a_compiler_crash_is_the_cases_outcome_and_the_device_is_left_alone(
    built: dict[str, Artifact | Answers | Failure],
) -> None:
    built["c-tiny"] = CompilerCrash("died of SIGSEGV", evidence="tail")
    device = FakeDevice()
    record = run(device, built)
    assert record.outcome is Outcome.COMPILER_CRASH
    assert record.evidence == "tail"
    assert device.steps == []


def test_half_precision_needs_a_device_that_has_it(built: Built) -> None:
    plan = replace(a_plan(), case=Case("tiny", "opencl", Precision.FLOAT16))
    record = run(FakeDevice(), built, plan)
    assert record.outcome is Outcome.UNSUPPORTED
    assert "cl_khr_fp16" in record.message


class FakeBuilder(Builder):
    """Has everything built already."""

    def __init__(self, built: Built) -> None:
        self._built = built

    def build(self, jobs: Any) -> Any:
        return {job.key: self._built[job.key] for job in jobs}


def test_each_record_is_on_disk_before_the_next_case_starts(built: Built, tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    both = {**built, "c-other": built["c-tiny"], "o-other": built["o-tiny"]}
    device = FakeDevice()
    running = run_suite([a_plan(), a_plan("other")], Run(device), FakeBuilder(both), file)
    first = next(running)
    assert file.load().records == [first]
    assert device.steps.count("session") == 1
    rest = list(running)
    assert file.load().records == [first, *rest]


def test_resuming_runs_what_is_not_settled_for_this_build_and_device(built: Built) -> None:
    plans = [a_plan(), a_plan("other")]
    done = run(FakeDevice(), built)
    assert missing(plans, Run(FakeDevice()), [done]) == plans[1:]
    lost = run(FakeDevice(fails={"run": DeviceLost("gone")}), built)
    assert missing(plans, Run(FakeDevice()), [lost]) == plans
    another_driver = FakeDevice(identity=Identity("virtual", "fake", gpu="G", driver="new"))
    assert missing(plans, Run(another_driver), [done]) == plans
    another_build = [replace(plans[0], compile=Job("compile", "c-new", "tiny", {}))]
    assert missing(another_build, Run(FakeDevice()), [done]) == another_build
