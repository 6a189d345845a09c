"""A quick look (`run --quick`): few samples of an emulated device, which nobody takes for a latency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things
from fake_records import IDENTITY, a_record, blessing_of, index_of, sessions

from device_runner.device import Identity
from harness.base.case import Case
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Budget, Plan
from harness.base.suite import Suite
from harness.judge.compare import compare_sides
from harness.judge.noise import NoiseProfile
from harness.judge.path_ranking import rank_paths
from harness.judge.sides import sides_of
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.measure.context import Run
from harness.measure.facts import Sampling
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.runner import settled_by
from harness.measure.tuning import TuningStore
from harness.measure.workbench import Request
from harness.tools.calibrate.calibration import interrupted_sessions, profile_of

EMULATED = replace(IDENTITY, kind="virtual", emulated=("gpu",))


def quick(plan: Plan) -> Plan:
    return replace(plan, budget=Budget(quick=True))


def a_run(folder: Path) -> Run:
    return Run(FakeDevice(), TuningStore(folder))


def looked(folder: Path, plan: Plan) -> Record:
    return run_case(plan, things(folder / "built"), a_run(folder), SilentProgress()).record


def test_it_takes_three_samples_and_says_what_it_is(tmp_path: Path) -> None:
    record = looked(tmp_path, quick(a_plan()))
    assert (record.outcome, record.quick) == (Outcome.OK, True)
    assert (len(record.wall_ms), len(record.device_ms)) == (3, 0)
    assert record.part(Sampling) == Sampling([], warmed_up=False, inferences=3)
    assert Record.model_validate_json(record.line()) == record
    full = looked(tmp_path, a_plan())
    assert (full.quick, len(full.wall_ms) >= 10) == (False, True)


def test_a_record_from_before_quick_looks_is_none() -> None:
    line = a_record().line().replace('"quick":false,', "")
    assert "quick" not in line
    assert Record.model_validate_json(line).quick is False


def test_it_settles_a_quick_look_and_nothing_else(tmp_path: Path) -> None:
    plan = a_plan()
    glance, full = looked(tmp_path, quick(plan)), looked(tmp_path, plan)
    run = a_run(tmp_path)
    with index_of(tmp_path, [glance]) as quickly:
        assert settled_by([plan], run.origin, quickly) == []
        assert settled_by([quick(plan)], run.origin, quickly) == [glance]
        assert interrupted_sessions([plan], run, quickly, 5) == {plan.case.id: []}
    with index_of(tmp_path, [full]) as fully:
        assert settled_by([plan], run.origin, fully) == settled_by([quick(plan)], run.origin, fully) == [full]
        assert interrupted_sessions([plan], run, fully, 5) == {plan.case.id: [full]}


@pytest.mark.parametrize("identity", [IDENTITY, Identity("local", "here", gpu="a GPU", emulated=("clml",))])
def test_a_device_that_is_the_real_thing_is_refused(identity: Identity, tmp_path: Path) -> None:
    suite = Suite(models=["tiny"], paths=["opencl"])
    request = Request(suite, [Case("tiny", "opencl")], tmp_path, quick=True)
    with pytest.raises(UsageError, match="is not emulated"):
        request.plans(identity)
    (plan,) = request.plans(EMULATED)
    assert plan.budget.quick
    assert plan.reference is None, "nothing of it is compared, so nothing has to tell the rig from the compiler"


def test_it_is_never_compared_as_a_latency() -> None:
    looks = sessions(20, seed=1, artifact="b", quick=True)
    (compared,) = compare_sides(sides_of(sessions(10)), sides_of(looks)).cases
    assert compared.verdict is Verdict.INCONCLUSIVE
    assert compared.reasons == ("right on both sides; head has no latency (a quick look's samples are too few)",)
    (wrong,) = compare_sides(
        sides_of(sessions(10)), sides_of([a_record(quick=True, outcome=Outcome.WRONG_RESULT)])
    ).cases
    assert wrong.verdict is Verdict.WRONG


def test_sessions_beside_it_still_count() -> None:
    (side,) = sides_of([*sessions(10, 3), a_record(wall_ms=[99.0] * 3, quick=True)]).values()
    assert (len(side.sessions), side.untimed) == (3, "")


def test_of_it_only_the_correctness_is_blessed() -> None:
    facts: dict[str, Any] = {"identity": EMULATED, "quick": True}
    blessing = blessing_of(sessions(10, 2, **facts), emulated=True)
    assert blessing.baseline
    assert (blessing.baseline.kind, blessing.baseline.sessions) == ("correctness", [])
    assert "a quick look's samples are too few" in blessing.notes[0]
    blessing = blessing_of([*sessions(10, 2, identity=EMULATED), *sessions(10, 2, seed=1, **facts)], emulated=True)
    assert blessing.baseline
    assert len(blessing.baseline.sessions) == 2
    assert "left out: a quick look's samples are too few" in blessing.notes


def test_it_ranks_no_path_and_profiles_no_noise() -> None:
    looks = sessions(10, 6, quick=True)
    (ranking,) = rank_paths(looks)
    assert ranking.standings[0].wall_ms is None
    assert not isinstance(profile_of(looks, Rules()), NoiseProfile)
