"""Two requests side by side: which cases are pairs, how they are measured, and what is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_device import ANSWER, FakeDevice, FakeProgram, FakeSession, a_plan, things
from msgspec import structs

from device_runner.device import Identity, Loadable
from harness.base.case import Case, Precision, Tuning
from harness.base.failures import UsageError
from harness.base.plan import Job
from harness.base.request import WORKED_AROUND
from harness.base.suite import Suite
from harness.compile.artifacts.artifact import INPUTS, OUTPUTS, save_arrays
from harness.judge.compare import Comparison, KernelChange
from harness.judge.confirm import SessionBudget, explainer
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.measure.workbench import Request
from harness.tools.ab.side_by_side import CasePair, Pairing, how_answers_differ, judge_in_turns, pair_cases

A, B = Case("a", "opencl"), Case("b", "opencl")
PAIRING = Pairing(({Arm.BASE: A, Arm.HEAD: B},), ("model",), ("a", "b"))


def request(*cases: Case, **facts: Any) -> Request:
    return Request(Suite(models=["tiny"], paths=["opencl"]), cases, Path("cache"), **facts)


def test_two_models_are_paired_path_by_path() -> None:
    sides = [request(*(Case(model, path) for path in ("texture", "opencl"))) for model in ("a", "b")]
    found = pair_cases(*sides)
    assert found.names == ("a", "b")
    assert [(pair[Arm.BASE].id, pair[Arm.HEAD].path, found.common(pair)) for pair in found.pairs] == [
        ("a-texture-float32-untuned", "texture", "texture"),
        ("a-opencl-float32-untuned", "opencl", "opencl"),
    ]


def test_two_precisions_are_paired_model_by_model() -> None:
    sides = [request(*(Case(m, "opencl", p) for m in ("a", "b"))) for p in (Precision.FLOAT32, Precision.FLOAT16)]
    found = pair_cases(*sides)
    assert found.names == ("float32", "float16")
    assert [found.common(pair) for pair in found.pairs] == ["a opencl", "b opencl"]


def test_two_tunings_of_one_artifact_are_two_sides() -> None:
    assert pair_cases(request(A), request(replace(A, tuning=Tuning.TUNED))).names == ("untuned", "tuned")


def test_sides_that_differ_in_no_axis_are_called_by_what_they_run_with() -> None:
    shipped = request(A, quirks=replace(WORKED_AROUND, as_shipped=True))
    assert pair_cases(request(A), shipped).names == ("with workarounds", "as shipped")
    assert pair_cases(request(A), request(A)).names == ("a", "b")


def test_what_could_be_meant_twice_is_refused() -> None:
    two = request(A, B)
    with pytest.raises(UsageError, match="the sides differ in the model, and one of them has a, b: name one model"):
        pair_cases(two, request(Case("c", "opencl")))


@dataclass
class TimedProgram(FakeProgram):
    ms: float = 2.0
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.inferences += repeat
        return [
            float(ms) for ms in self.ms * np.exp(0.01 * self.noise.normal() + 0.01 * self.noise.normal(size=repeat))
        ]

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        return self.wall_ms(repeat, timeout_s=timeout_s)


class TimedSession(FakeSession):
    def load(self, loadable: Loadable, *, timeout_s: float) -> FakeProgram:
        device = self.device
        assert isinstance(device, TimedDevice)
        return TimedProgram(device, ms=device.ms, noise=device.noise)


@dataclass
class TimedDevice(FakeDevice):
    """A device whose clock is simulated: the next session's inferences take `ms`."""

    ms: float = 20.0
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    identity: Identity = field(default_factory=lambda: Identity("phone", "simulated", gpu="G"))

    def session(self, toggles: Any, *, timeout_s: float) -> Any:
        from contextlib import nullcontext

        self.met("session")
        return nullcontext(TimedSession(self, toggles))


@dataclass
class Bench:
    """Runs both sides through the loop of every run, on one simulated device."""

    folder: Path
    ms: dict[Arm, float]
    errors: dict[Arm, float] = field(default_factory=dict)
    order: list[Arm] = field(default_factory=list)
    device: TimedDevice = field(default_factory=TimedDevice)

    def measure(self, pair: CasePair, arm: Arm) -> Record:
        self.order.append(arm)
        self.device.ms, self.device.error = self.ms[arm], self.errors.get(arm, 0.0)
        plan = a_plan("tiny")
        run = Run(self.device, TuningStore(self.folder))
        record = run_with_recovery(plan, things(self.folder / "tiny"), run, SilentProgress())
        case = pair[arm]
        return record.model_copy(update={"case": case.id, "model": case.model})


def judged(bench: Bench, **how: Any) -> tuple[Sequence[Verdict], str]:
    verdicts, _ = judge_in_turns(PAIRING, bench.measure, Rules(), **how)
    return [case.verdict for case in verdicts.result.cases], verdicts.answer


def test_the_faster_side_is_named_with_how_many_times_and_one_artifact_may_be_two_sides(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {Arm.BASE: 26.2, Arm.HEAD: 20.0})
    verdicts, answer = judged(bench)
    assert verdicts == [Verdict.FASTER]
    assert answer.startswith("b is 1.3")
    assert " times as fast as a on opencl, 1." in answer
    assert answer.endswith("; both right")
    assert bench.order.count(Arm.BASE) == bench.order.count(Arm.HEAD) > 1, "in turns"


def test_without_time_it_is_undecided_and_says_what_it_looks_like(tmp_path: Path) -> None:
    verdicts, answer = judged(Bench(tmp_path, {Arm.BASE: 20.0, Arm.HEAD: 26.2}), budget=SessionBudget(0.0))
    assert verdicts == [Verdict.INCONCLUSIVE]
    assert answer.startswith("undecided, it looks as if a is 1.")


@pytest.mark.parametrize(
    ("wrong", "verdict", "begins", "ends"),
    [
        (Arm.HEAD, Verdict.WRONG, "b is wrong (output 0", ", a is right on opencl"),
        (Arm.BASE, Verdict.FIXED, "a is wrong (output 0", ", b is right on opencl"),
    ],
)
def test_each_side_is_judged_by_its_own_truth(
    tmp_path: Path, wrong: Arm, verdict: Verdict, begins: str, ends: str
) -> None:
    bench = Bench(tmp_path, {Arm.BASE: 20.0, Arm.HEAD: 20.0}, {wrong: 1.0})
    verdicts, answer = judged(bench)
    assert verdicts == [verdict]
    assert answer.startswith(begins)
    assert answer.endswith(ends)
    assert bench.order == [Arm.BASE, Arm.HEAD], "a wrong answer is not timed"


@pytest.mark.parametrize(
    ("factor", "drawn", "says"), [(2.0, 0.0, "output 0 is off by 3 at"), (1.0, 0.0, ""), (2.0, 1.0, "")]
)
def test_two_right_sides_that_compute_something_else_say_so_where_they_have_the_same_inputs(
    tmp_path: Path, factor: float, drawn: float, says: str
) -> None:
    base, other = things(tmp_path / "base"), things(tmp_path / "head")["o-tiny"]
    save_arrays(tmp_path / "head" / INPUTS, [np.full((1, 3), drawn, np.float32)])
    save_arrays(tmp_path / "head" / OUTPUTS, [ANSWER * factor])
    plans = {Arm.BASE: a_plan(), Arm.HEAD: replace(a_plan(), oracle=Job("oracle", "o-other", "other", {}))}
    differ = how_answers_differ(plans, {**base, "o-other": other})
    assert differ.startswith(says)
    assert bool(differ) == bool(says)
    _, answer = judged(Bench(tmp_path, dict.fromkeys(Arm, 20.0)), differences={B.id: differ}, budget=SessionBudget(0.0))
    assert answer.endswith(f"; both right, but they compute something else: {differ}" if says else "; both right")


def test_of_a_faster_side_the_kernels_of_both_are_shown(tmp_path: Path) -> None:
    asked: list[str] = []

    def explain(comparison: Comparison) -> tuple[KernelChange, ...]:
        asked.append(comparison.key.case)
        return (KernelChange("conv2d", 9.0, 3.0, (1, 1), "new"),)

    bench = Bench(tmp_path, {Arm.BASE: 26.2, Arm.HEAD: 20.0})
    verdicts, _ = judge_in_turns(PAIRING, bench.measure, Rules(), explain=explain)
    assert asked == [B.id]
    assert f"kernels of {B.id}, one session of each side" in verdicts.text()
    assert "-6.000" in verdicts.text()


def test_the_kernels_of_each_side_are_watched_with_its_own_plan(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {Arm.BASE: 26.2, Arm.HEAD: 20.0})
    verdicts, _ = judge_in_turns(PAIRING, bench.measure, Rules(), SessionBudget(0.0))
    (comparison,) = verdicts.result.cases
    assert PAIRING.of_head(comparison.key.case) == {Arm.BASE: A, Arm.HEAD: B}
    plans = {Arm.BASE: a_plan("tiny"), Arm.HEAD: replace(a_plan("tiny"), case=B)}
    run = Run(FakeDevice(), TuningStore(tmp_path))
    explain = explainer(
        "side by side", lambda _: plans, things(tmp_path / "things"), dict.fromkeys(Arm, run), SilentProgress()
    )
    assert explain
    (kernel,) = explain(comparison)
    assert kernel.base_ms == kernel.head_ms == pytest.approx(1.5)


def test_when_the_time_is_up_it_says_so_however_little_its_sessions_show(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {Arm.BASE: 20.0, Arm.HEAD: 20.9})
    budget = SessionBudget(0.3, now=count(step=15).__next__)
    verdicts, _ = judge_in_turns(PAIRING, bench.measure, Rules(), budget)
    (case,) = verdicts.result.cases
    assert case.change
    blind = structs.replace(case, change=structs.replace(case.change, sees=float("inf")))
    assert not blind.looked
    said = "the time was up: 1 of 1 case is not decided. Run it again with about"
    assert said in replace(verdicts, result=replace(verdicts.result, cases=[blind])).text()


@pytest.mark.parametrize(("minutes", "more"), [(0.1, 2), (1.5, 2), (2.5, 6)])
def test_only_the_first_look_may_take_longer_than_the_time_and_is_announced(
    minutes: float, more: int, tmp_path: Path
) -> None:
    """A session takes 20 s. The first look needs two besides the first of each side, and every other look four."""
    bench, now, said = Bench(tmp_path, {Arm.BASE: 20.0, Arm.HEAD: 20.3}), [0.0], list[str]()

    def measure(pair: CasePair, arm: Arm) -> Record:
        now[0] += 20
        return bench.measure(pair, arm)

    judge_in_turns(PAIRING, measure, Rules(), SessionBudget(minutes, lambda: now[0], said.append))
    assert now[0] == 20 * (2 + more)
    assert any("take about 40 s more: longer than --minutes says" in line for line in said) is (minutes < 0.5)
