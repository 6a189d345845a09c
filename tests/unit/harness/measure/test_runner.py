"""One case, from plan to record, on a device made of plain Python."""

from __future__ import annotations

import contextlib
import gc
import json
import signal
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_device import ANSWER, FakeDevice, FakeProgram, FakeSession, Things, a_plan, things
from fake_records import index_of
from interruptible import ended_by
from places import ROOT

from device_runner.device import Identity, Loadable, PeakMemory, Rung, Steadiness
from device_runner.failures import (
    DeviceCrash,
    DeviceLost,
    Failure,
    Hang,
    KernelBuildFailure,
    ProgramFailure,
    RigFailure,
)
from harness.base.case import Case, Precision
from harness.base.failures import CompilerCrash, OracleNotFinite
from harness.base.outcome import ExitCode, Outcome, Owner, exit_code
from harness.base.plan import Budget, Job, Plan, no_double, unsupported
from harness.compile.artifacts.artifact import (
    LABELLED,
    OTHER_OUTPUTS,
    OUTPUTS,
    RANGE,
    Answers,
    Artifact,
    Built,
    save_arrays,
)
from harness.compile.artifacts.pool import Builder
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.device_watch import DeviceWatch
from harness.measure.facts import Batches, Sampling
from harness.measure.loop import run_case
from harness.measure.probes.latency import FEWEST_SAMPLES
from harness.measure.progress import RunStep, SilentProgress
from harness.measure.records.record import Record, RecordFile, parse
from harness.measure.runner import missing_plans, run_suite, settled_by
from harness.measure.tuning import TuningStore
from harness.tools.labelled.part import Score, TopOne
from harness.tools.labelled.score import SCORE, SCORED


@pytest.fixture
def built(tmp_path: Path) -> Things:
    return things(tmp_path)


def run(device: FakeDevice, built: Built, plan: Plan | None = None) -> Record:
    return run_case(plan or a_plan(), built, a_run(device), SilentProgress()).record


def a_run(device: FakeDevice) -> Run:
    return Run(device, TuningStore(Path("/nowhere")))


TIMED = [
    (Budget(seconds=4), {"run", "wall", "device", "batches", "launches"}),
    (Budget(sustain_s=0.05), {"wall", "look"}),
]


@pytest.mark.parametrize(("budget", "while_timed"), TIMED)
def test_the_device_is_not_watched_while_it_is_timed(built: Things, budget: Budget, while_timed: set[str]) -> None:
    watch, paused = DeviceWatch(), set[str]()

    class TimedDevice(FakeDevice):
        def met(self, step: str) -> None:
            super().met(step)
            if watch.paused().locked():
                paused.add(step)

    plan = replace(a_plan(), budget=budget)
    record = run_case(plan, built, replace(a_run(TimedDevice()), watch=watch), SilentProgress()).record
    assert record.outcome is Outcome.OK
    assert paused == while_timed


def test_a_right_case_is_measured_and_its_record_tells_all(built: Built) -> None:
    record = run(FakeDevice(), built)
    assert record.outcome is Outcome.OK
    assert len(record.wall_ms) >= FEWEST_SAMPLES
    assert set(record.device_ms) == {1.5}
    assert record.device_clock == "kernels"
    assert (record.init_ms, record.first_run_ms, record.max_abs_err) == (7.0, 11.0, 0.0)
    assert (record.library_bytes, record.compile_s, record.facts) == (999, 1.25, {"kernels": 4})
    assert record.quirks == ("some-quirk",)
    assert record.emulated == ("gpu",)
    assert record.sent_bytes == 123
    assert record.part(PeakMemory) == PeakMemory(None, None)


@pytest.mark.parametrize("error", [0.0, 0.5])
def test_the_peak_of_memory_is_known_of_right_and_of_wrong_answers(built: Built, error: float) -> None:
    record = run(FakeDevice(error=error, memory=PeakMemory(7 << 20, 5 << 20)), built)
    assert record.part(PeakMemory) == PeakMemory(7 << 20, 5 << 20)


def test_a_wrong_answer_gets_no_latency(built: Built) -> None:
    device = FakeDevice(error=0.5)
    record = run(device, built)
    assert record.outcome is Outcome.WRONG_RESULT
    assert record.wall_ms == record.device_ms == []
    assert record.max_abs_err == pytest.approx(0.5)
    assert record.message.startswith("output 0 is off by 0.5")
    assert "wall" not in device.steps


@pytest.mark.parametrize("right_runs", [1, 2])
def test_a_case_that_is_wrong_by_the_end_gets_no_latency(built: Built, right_runs: int) -> None:
    record = run(FakeDevice(later_error=0.5, right_runs=right_runs), built)
    assert record.outcome is Outcome.WRONG_RESULT
    assert record.message.startswith("the first answer was right, answer ")
    assert record.accuracy is not None
    assert not record.accuracy.right
    assert record.wall_ms == record.device_ms == []
    assert record.part(Batches) is None


def test_a_run_that_only_judges_takes_no_samples(built: Built) -> None:
    device = FakeDevice()
    record = run_case(a_plan(), built, replace(a_run(device), timed=False), SilentProgress()).record
    assert record.outcome is Outcome.OK
    assert record.accuracy
    assert record.wall_ms == []
    assert record.part(Sampling) is None
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


def test_a_throttled_run_has_samples_that_nothing_compares(built: Built) -> None:
    throttled = Steadiness(throttled=True, why="the GPU was held at level 2", facts={"after": {"thermal_pwrlevel": 2}})
    device = FakeDevice(steadiness=throttled)
    record = run(device, built)
    assert record.outcome is Outcome.THROTTLED
    assert record.message == "the GPU was held at level 2"
    assert record.wall_ms == record.device_ms == []
    assert set(record.throttled_ms) == {2.0}
    assert record.steadiness == {"after": {"thermal_pwrlevel": 2}}
    assert not record.outcome.conclusive
    assert device.steps[-1] == "closed"


def test_a_fault_of_ours_is_told_with_its_traceback(built: Built) -> None:
    record = run(FakeDevice(fails={"run": ZeroDivisionError("ours")}), built)
    assert "ZeroDivisionError: ours" in record.message
    assert "Traceback" in record.evidence


def test_a_session_that_failed_is_not_kept_until_garbage_is_collected(
    built: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[weakref.ref[FakeSession]] = []

    def load(session: FakeSession, *_: Any, **__: Any) -> Any:
        kept.append(weakref.ref(session))
        try:
            raise OSError("the connection broke")
        except OSError as error:
            session.failure = DeviceLost("gone")  # type: ignore[attr-defined]
            raise session.failure from error  # type: ignore[attr-defined]

    monkeypatch.setattr(FakeSession, "load", load)
    gc.disable()
    try:
        run(FakeDevice(), built)
        assert kept[0]() is None
    finally:
        gc.enable()


def test_ctrl_c_gives_no_outcome(built: Built) -> None:
    device = FakeDevice(fails={"wall": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(device, built)
    assert device.steps[-1] == "closed"


def interrupted_where_nobody_hears_it() -> None:
    """As a signal that arrives while TVM frees a remote object: its exception is dropped."""
    with contextlib.suppress(SystemExit):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("fails_then", [False, True])
def test_an_interrupt_whose_exception_was_lost_gives_no_outcome_either(
    built: Built, monkeypatch: pytest.MonkeyPatch, fails_then: bool
) -> None:
    def load(session: FakeSession, loadable: Loadable, *, timeout_s: float) -> FakeProgram:
        interrupted_where_nobody_hears_it()
        if fails_then:
            raise ProgramFailure("the connection is out of step")
        return FakeProgram(session.device)

    monkeypatch.setattr(FakeSession, "load", load)
    with ended_by(signal.SIGINT):
        run(FakeDevice(), built)
        pytest.fail("a case that was interrupted has no record")


def test_a_compiler_crash_is_the_cases_outcome_and_the_device_is_left_alone(
    built: dict[str, Artifact | Answers | Failure],
) -> None:
    built["c-tiny"] = CompilerCrash("died of SIGSEGV", evidence="tail")
    device = FakeDevice()
    record = run(device, built)
    assert record.outcome is Outcome.COMPILER_CRASH
    assert record.evidence == "tail"
    assert device.steps == []


def test_what_a_device_is_known_not_to_run_is_not_built_and_not_tried() -> None:
    plan = replace(a_plan(), case=Case("tiny", "opencl", Precision.FLOAT16), unsupported="no cl_khr_fp16")
    assert plan.jobs == ()
    device = FakeDevice()
    record = run(device, {}, plan)
    assert (record.outcome, record.message) == (Outcome.UNSUPPORTED, "no cl_khr_fp16")
    assert record.artifact == plan.compile.key
    assert device.steps == []


@pytest.mark.parametrize(
    ("precision", "extensions", "lacks"),
    [
        (Precision.FLOAT32, ("cl_khr_icd",), False),
        (Precision.FLOAT16, ("cl_khr_icd",), True),
        (Precision.FLOAT16_ACC32, ("cl_khr_icd",), True),
        (Precision.FLOAT16, ("cl_khr_fp16",), False),
        (Precision.FLOAT16, (), False),  # it does not say
    ],
)
def test_only_a_device_that_says_it_has_no_half_precision_is_refused_it(
    precision: Precision, extensions: tuple[str, ...], lacks: bool
) -> None:
    why = unsupported(Case("tiny", "opencl", precision), Identity("phone", "fake", gpu="G", extensions=extensions))
    assert ("G cannot compute in half precision (no cl_khr_fp16)" in why) is lacks
    assert bool(why) is lacks


@pytest.mark.parametrize(("extensions", "lacks"), [(("cl_khr_icd",), True), (("cl_khr_fp64",), False), ((), False)])
def test_only_a_device_that_says_it_has_no_float64_is_refused_it(extensions: tuple[str, ...], lacks: bool) -> None:
    identity = Identity("phone", "fake", gpu="G", extensions=extensions)
    why = "G cannot compute in float64 (no cl_khr_fp64), and the model does (Cast, Exp): export it in float32"
    assert no_double(identity, ("Cast", "Exp")) == (why if lacks else "")
    assert no_double(identity, ()) == ""


def test_half_precision_is_tried_on_a_device_that_does_not_say_whether_it_has_it(built: Built) -> None:
    plan = replace(a_plan(), case=Case("tiny", "opencl", Precision.FLOAT16))
    silent = FakeDevice(identity=Identity("phone", "fake", gpu="G"))
    assert silent.identity.fp16 is None
    assert run(silent, built, plan).outcome is Outcome.OK


@pytest.mark.parametrize(
    "compiled",
    [{"facts": {"kernels": 4, "half_kernels": 3}}, {"inputs": [("x", [1, 3], "float16")], "facts": {}}],
)
def test_a_half_precision_model_is_unsupported_whatever_precision_the_case_says(
    built: Things, compiled: dict[str, Any]
) -> None:
    case = built["c-tiny"]
    assert isinstance(case, Artifact)
    model = {**built, "c-tiny": replace(case, compiled=replace(case.compiled, **compiled))}
    record = run(FakeDevice(), model)
    assert record.outcome is Outcome.UNSUPPORTED
    assert "no cl_khr_fp16), and the model itself is in half precision" in record.message
    able = FakeDevice(identity=HALF)
    assert run(able, model).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("compiled", "lacking", "able", "why"),
    [
        (
            {"facts": {"kernels": 4, "double_kernels": 3}},
            {"extensions": ("cl_khr_fp16",)},
            [{"extensions": ("cl_khr_fp64",)}, {"extensions": ()}],
            "G cannot compute in float64 (no cl_khr_fp64), and the model does (3 of its kernels)",
        ),
        (
            {"facts": {"image_side": 9000, "image_layers": 3}},
            {"image2d_max_height": 8192},
            [{}],
            "the model needs an image of 9000 pixels a side, and G has 8192",
        ),
        (
            {"facts": {"image_side": 9, "image_layers": 2049}},
            {},
            [{"image_max_array_layers": 4096}],
            "the model needs an image of 2049 layers, and G has 2048",
        ),
        (
            {"launches": {"small": {"group": 64}, "large": {"group": 2048}, "open": {"group": None}}},
            {"work_group_items": 1024},
            [{"work_group_items": 4096}, {"work_group_items": 0}],
            "large needs work-groups of 2048 items, and G has 1024",
        ),
        (
            {"launches": {"pad": {"group": 64, "local_bytes": 74752}, "conv": {"group": 64}}},
            {"local_memory_bytes": 32768},
            [{"local_memory_bytes": 98304}, {"local_memory_bytes": 0}],
            "pad needs 74752 bytes of local memory in a work-group, and G has 32768",
        ),
        (
            {"facts": {"buffer_bytes": (1 << 30) + 4}},
            {"allocation_bytes": 1 << 30},
            [{"allocation_bytes": 2 << 30}, {"allocation_bytes": 0}],
            "the largest buffer of the model has 1073741828 bytes, and G allows 1073741824 bytes",
        ),
    ],
)
def test_what_the_device_lacks_is_said_and_no_session_opened(
    built: Things, compiled: dict[str, Any], lacking: dict[str, Any], able: list[dict[str, Any]], why: str
) -> None:
    case = built["c-tiny"]
    assert isinstance(case, Artifact)
    model = {**built, "c-tiny": replace(case, compiled=replace(case.compiled, **compiled))}
    device = FakeDevice(identity=replace(FakeDevice().identity, **lacking))
    record = run(device, model)
    assert (record.outcome, record.message) == (Outcome.UNSUPPORTED, why)
    assert record.hint
    assert "session" not in device.steps
    for identity in (replace(FakeDevice().identity, **fields) for fields in able):  # one that does not say may try
        assert run(FakeDevice(identity=identity), model).outcome is Outcome.OK


def test_a_model_that_the_device_has_no_room_for_is_unsupported_and_opens_no_session(built: Things) -> None:
    case = built["c-tiny"]
    assert isinstance(case, Artifact)
    facts = {**case.compiled.facts, "storage_bytes": 3_000_000_000}
    model = {**built, "c-tiny": replace(case, compiled=replace(case.compiled, facts=facts))}
    small = FakeDevice(identity=replace(FakeDevice().identity, memory_bytes=2_000_000_000))
    record = run(small, model)
    assert record.outcome is Outcome.UNSUPPORTED
    assert "the model takes about 3 GB of memory, and G has 2 GB" in record.message
    assert "session" not in small.steps
    large = FakeDevice(identity=replace(FakeDevice().identity, memory_bytes=4_000_000_000))
    assert run(large, model).outcome is Outcome.OK
    assert run(FakeDevice(), model).outcome is Outcome.OK  # one that does not say


class Heard(SilentProgress):
    """Keeps the steps that it is told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, case_id: str, step: str) -> None:
        self.steps.append(step)


def test_a_case_goes_through_the_steps_that_progress_and_the_docs_list(built: Built) -> None:
    heard = Heard()
    run_case(a_plan(), built, a_run(FakeDevice()), heard)
    assert [*heard.steps, RunStep.DEVICE_LOST] == [*RunStep]
    watching = " ".join((ROOT / "docs/how-to/fleet.md").read_text(encoding="utf-8").split())
    assert all(f"`{step}`" in watching for step in RunStep)


def test_a_device_that_is_lost_is_a_step_too(built: Built) -> None:
    heard = Heard()
    device = FakeDevice(fails={"run": DeviceLost("gone")}, rungs=[Rung("reconnect", 1.0, lambda _: None)])
    run_with_recovery(a_plan(), built, a_run(device), heard)
    assert f"{RunStep.DEVICE_LOST}: reconnect" in heard.steps


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
    running = run_suite([a_plan(), a_plan("other")], a_run(device), FakeBuilder(both), file)
    first = next(running)
    assert file.load().records == [first]
    assert device.steps.count("session") == 1
    rest = list(running)
    assert file.load().records == [first, *rest]


def test_what_settles_a_plan_is_its_latest_record(built: Built, tmp_path: Path) -> None:
    origin = a_run(FakeDevice()).origin
    first, second = run(FakeDevice(), built), run(FakeDevice(), built)
    with index_of(tmp_path, [first, second]) as kept:
        assert settled_by([a_plan(), a_plan("other")], origin, kept) == [second]
        assert settled_by([a_plan()], replace(origin, as_shipped=True), kept) == []


def test_resuming_runs_what_is_not_settled_for_this_build_and_device(built: Built, tmp_path: Path) -> None:
    def left(plans: Sequence[Plan], device: FakeDevice, record: Record) -> list[Plan]:
        with index_of(tmp_path, [record]) as kept:
            return missing_plans(plans, settled_by(plans, a_run(device).origin, kept))

    plans = [a_plan(), a_plan("other")]
    done = run(FakeDevice(), built)
    assert left(plans, FakeDevice(), done) == plans[1:]
    assert left(plans, FakeDevice(), run(FakeDevice(fails={"run": DeviceLost("gone")}), built)) == plans
    assert left(plans, FakeDevice(identity=Identity("virtual", "fake", gpu="G", driver="new")), done) == plans
    another_build = [replace(plans[0], compile=Job("compile", "c-new", "tiny", {}))]
    assert left(another_build, FakeDevice(), done) == another_build
    rebuilt_runtime = FakeDevice(identity=replace(FakeDevice().identity, runtime="0a1b"))
    assert left(plans, rebuilt_runtime, done) == plans


def test_an_answer_that_proves_nothing_stays_ok_and_says_so(tmp_path: Path) -> None:
    built = things(tmp_path)
    save_arrays(tmp_path / OTHER_OUTPUTS, [ANSWER])
    record = run(FakeDevice(), built)
    assert record.outcome is Outcome.OK
    assert record.wall_ms
    assert record.vacuous == ["output 0 of 1 does not depend on the input: the answer to another one would be right"]
    assert run(FakeDevice(error=0.5), built).vacuous == []


@pytest.mark.parametrize("proof", [True, False])
def test_a_constant_output_leaves_the_proof_of_the_others(proof: bool, tmp_path: Path) -> None:
    built, anchors = things(tmp_path), np.full((2, 2), 4, np.float32)
    save_arrays(tmp_path / OUTPUTS, [ANSWER, anchors])
    save_arrays(tmp_path / OTHER_OUTPUTS, [ANSWER * (1 + proof), anchors])
    record = run(FakeDevice(more_outputs=[anchors]), built)
    assert record.outcome is Outcome.OK
    lines = ["output 1 of 2 is constant: 4 everywhere"]
    assert record.partly_vacuous == (lines if proof else [])
    assert record.vacuous[1:] == ([] if proof else lines)
    wrong = run(FakeDevice(more_outputs=[anchors + 1]), built)
    assert (wrong.outcome, wrong.wall_ms) == (Outcome.WRONG_RESULT, [])


def test_an_oracle_that_is_not_finite_is_the_models_and_no_green_run(built: Things) -> None:
    built["o-tiny"] = OracleNotFinite("output 0 of the model is not finite", hint="correct the model")
    device = FakeDevice()
    record = run(device, built)
    assert (record.outcome, record.outcome.owner) == (Outcome.ORACLE_NOT_FINITE, Owner.MODEL)
    assert record.hint == "correct the model"
    assert exit_code([Outcome.OK, record.outcome]) is ExitCode.WRONG_OR_BROKEN
    assert device.steps == []


def labelled(folder: Path, labels: list[int]) -> None:
    """Inputs of these classes, of which the oracle gets every one right; the device's answer is always class 2."""
    classes = np.array(labels)
    save_arrays(folder / LABELLED, [np.zeros((len(labels), 3), np.float32), classes, classes])


def test_labelled_inputs_are_asked_one_batch_after_the_other_and_counted(built: Built, tmp_path: Path) -> None:
    labelled(tmp_path, [2] * 30)
    record = run(FakeDevice(), built)
    assert record.outcome is Outcome.OK
    counted = record.part(TopOne)
    assert counted
    assert (counted.inputs, counted.right, counted.oracle_right) == (30, 30, 30)
    assert parse(record.line().encode()) == record


def test_a_quick_look_asks_the_first_labelled_inputs_alone(built: Built, tmp_path: Path) -> None:
    labelled(tmp_path, [2] * 60 + [1] * 300)
    record = run(FakeDevice(), built, replace(a_plan(), budget=replace(a_plan().budget, quick=True)))
    counted = record.part(TopOne)
    assert counted
    assert (counted.inputs, counted.right) == (60, 60)


@pytest.mark.parametrize(("oracle", "outcome"), [(2.0, Outcome.OK), (2.02, Outcome.OK), (2.1, Outcome.WRONG_RESULT)])
def test_a_function_of_the_user_scores_the_answers_for_labelled_inputs(
    built: Built, tmp_path: Path, oracle: float, outcome: Outcome
) -> None:
    scored(tmp_path, "'mean', sum(output.mean() for (output,) in outputs) / len(labels)", oracle)
    record = run(FakeDevice(), built, a_scored_plan(tmp_path))
    assert (score := record.part(Score))
    assert (score.name, score.value, score.oracle, score.inputs) == ("mean", 2.0, oracle, 30)
    assert score.least == pytest.approx(0.99 * oracle)
    assert record.outcome is outcome
    assert (record.wall_ms == []) is (outcome is Outcome.WRONG_RESULT)
    assert parse(record.line().encode()) == record


def test_a_function_of_the_user_that_fails_is_one_line_for_its_owner(built: Built, tmp_path: Path) -> None:
    scored(tmp_path, "outputs[99]", 2.0)
    record = run(FakeDevice(), built, a_scored_plan(tmp_path))
    assert (record.outcome, record.owner) == (Outcome.INPUT_REFUSED, Owner.MODEL)
    assert record.message.endswith("metrics.py:score failed: IndexError: list index out of range")
    scored(tmp_path, "'other', 1.0", 2.0)
    record = run(FakeDevice(), built, a_scored_plan(tmp_path))
    assert record.message.endswith("metrics.py:score returned 'other', and 'mean' for the oracle")


def test_a_quick_look_leaves_the_score_out(built: Built, tmp_path: Path) -> None:
    scored(tmp_path, "outputs[99]", 2.0)
    plan = a_scored_plan(tmp_path)
    record = run(FakeDevice(), built, replace(plan, budget=replace(plan.budget, quick=True)))
    assert (record.outcome, record.part(Score)) == (Outcome.OK, None)


def scored(folder: Path, value: str, oracle: float) -> None:
    """Labelled inputs that a function scores, and its number for the oracle."""
    save_arrays(folder / SCORED, [np.zeros((30, 3), np.float32), np.zeros((30, 5))])
    (folder / SCORE).write_text(json.dumps(["mean", oracle]))
    (folder / "metrics.py").write_text(f"def score(outputs, labels):\n    return {value}\n")


def a_scored_plan(folder: Path) -> Plan:
    plan = a_plan()
    return replace(plan, oracle=replace(plan.oracle, payload={"score": f"{folder / 'metrics.py'}:score"}))


def test_too_few_right_classes_are_a_wrong_result_without_latency(built: Built, tmp_path: Path) -> None:
    labelled(tmp_path, [2] * 20 + [1] * 10)
    record = run(FakeDevice(), built)
    assert (record.outcome, record.wall_ms) == (Outcome.WRONG_RESULT, [])
    assert record.message.startswith("top-1 dropped: 20 of 30 labelled inputs are right, and 30 by the oracle")
    assert record.accuracy
    assert record.accuracy.right


HALF = Identity("virtual", "fake", gpu="G", extensions=("cl_khr_fp16",))


@pytest.mark.parametrize(
    ("reached", "error", "outcome"),
    [(7e4, 0.5, Outcome.OUT_OF_RANGE), (6e4, 0.5, Outcome.WRONG_RESULT), (7e4, 0.0, Outcome.OK)],
)
def test_a_network_that_leaves_float16s_range_is_not_called_wrong(
    built: Built, tmp_path: Path, reached: float, error: float, outcome: Outcome
) -> None:
    plan = replace(a_plan(precision=Precision.FLOAT16), range=Job("range", "r-tiny", "tiny", {}))
    (tmp_path / RANGE).write_text(json.dumps({"largest": reached, "at": "Mul 'big'"}))
    device = FakeDevice(error=error, identity=HALF)
    record = run(device, {**built, "r-tiny": Answers(tmp_path, reused=True)}, plan)
    assert record.outcome is outcome
    if outcome is Outcome.OUT_OF_RANGE:
        assert record.outcome.owner is Owner.MODEL
        assert "Mul 'big' reaches 7e+04 in single precision" in record.message


def test_where_the_range_is_not_known_a_wrong_answer_is_wrong(built: Built) -> None:
    plan = replace(a_plan(precision=Precision.FLOAT16), range=Job("range", "r-tiny", "tiny", {}))
    record = run(FakeDevice(error=0.5, identity=HALF), {**built, "r-tiny": CompilerCrash("died")}, plan)
    assert record.outcome is Outcome.WRONG_RESULT


def test_a_device_of_ours_that_is_lost_is_tried_again_by_the_next_case(built: Built) -> None:
    both = {**built, "c-other": built["c-tiny"], "o-other": built["o-tiny"]}
    device = FakeDevice(fails={"load": DeviceLost("gone")}, rungs=[Rung("look", 1.0, lambda _: None)])
    running = run_suite([a_plan(), a_plan("other")], a_run(device), FakeBuilder(both))
    assert next(running).outcome is Outcome.DEVICE_LOST
    device.fails.clear()
    (second,) = running
    assert second.outcome is Outcome.OK
