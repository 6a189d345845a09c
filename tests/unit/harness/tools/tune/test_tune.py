"""The search for schedules: where trials go, what a bad candidate costs, and what is kept in the end."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from fake_schedules import ORIGIN, PHONE
from fake_tuning import CHEAP, DEAR, Behaviour, Bench, candidates, name_of
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Steadiness
from device_runner.failures import DeviceCrash, DeviceLost, Failure, Hang, RigFailure
from harness.base.failures import CompileFailure, CompilerCrash, UsageError
from harness.compile.schedules.database import Schedules, TaskLimits
from harness.tools.tune.dispatcher import FILE, TrialLog
from harness.tools.tune.search import Search, Trial, commonest_reason
from harness.tools.tune.search_worker import TimeUse
from harness.tools.tune.tune import open_schedules


def test_a_wrong_candidate_is_not_timed_and_not_kept_however_fast_it_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), Behaviour(0.001, error=0.5), Behaviour(3.0)))
    search = bench.search(2)
    standing = search.standings[DEAR.task]
    wrong = standing.trials[0]
    assert (wrong.outcome, wrong.ms, wrong.right) == ("wrong-result", None, False)
    assert standing.best is standing.trials[1]
    (winner,) = bench.winners(search)
    assert winner.schedule
    assert (winner.schedule.ms, winner.schedule.untuned_ms, winner.schedule.trials) == (3.0, 9.0, 2)


@pytest.mark.parametrize("end", [Hang("it hangs"), DeviceCrash("it died")])
def test_a_candidate_that_hangs_or_crashes_costs_itself_and_a_new_session(tmp_path: Path, end: Failure) -> None:
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), Behaviour(raises=end), Behaviour(3.0)))
    standing = bench.search(2).standings[DEAR.task]
    assert [standing.trials[seed].outcome for seed in (0, 1)] == [end.outcome, "ok"]
    assert bench.device.steps.count("session") == 2


def test_a_candidate_whose_launches_nobody_saw_costs_itself_and_a_new_session(tmp_path: Path) -> None:
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), Behaviour(unseen=True), Behaviour(3.0)))
    standing = bench.search(2).standings[DEAR.task]
    assert "no launch of its kernels was seen" in standing.trials[0].message
    assert standing.best is standing.trials[1]
    assert bench.device.steps.count("session") == 2


@pytest.mark.parametrize("failure", [CompileFailure("too long"), CompilerCrash("died of SIGSEGV")])
def test_a_candidate_that_does_not_build_is_a_failed_trial(tmp_path: Path, failure: Failure) -> None:
    known = candidates(DEAR, Behaviour(9.0), Behaviour(), Behaviour(3.0))
    standing = Bench(tmp_path, known, {name_of((DEAR, 0)): failure}).search(2).standings[DEAR.task]
    assert standing.trials[0].message == failure.message
    assert standing.best is standing.trials[1]


def test_a_search_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    known = candidates(DEAR, Behaviour(9.0), *(Behaviour(5.0 - seed) for seed in range(4)))
    Bench(tmp_path, known).search(2)
    second = Bench(tmp_path, known)
    search = second.search(2)
    assert second.shop.asked == [(DEAR.name, 2), (DEAR.name, 3)]
    assert search.tried == 4
    assert search.standings[DEAR.task].gain == 90.0 / 2.0


def test_what_was_tried_before_the_device_was_lost_is_kept(tmp_path: Path) -> None:
    lost = Behaviour(raises=DeviceLost("gone"))
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), Behaviour(3.0), lost, Behaviour(2.0)))
    with pytest.raises(DeviceLost, match="gone: finished trials are kept"):
        bench.search(3)
    assert [trial.seed for trial in bench.log.read()] == [0]


def test_a_line_torn_by_a_kill_is_tried_again_and_spoils_no_other(tmp_path: Path) -> None:
    known = candidates(DEAR, Behaviour(9.0), *(Behaviour(5.0 - seed) for seed in range(3)))
    bench = Bench(tmp_path, known)
    bench.search(2)
    (file,) = tmp_path.glob(f"trials/*/{FILE}")
    file.write_bytes(file.read_bytes()[:-20])
    assert [trial.seed for trial in bench.log.read()] == [0]
    assert Bench(tmp_path, known).search(2).tried == 3
    assert [trial.seed for trial in bench.log.read()] == [0, 1, 2]


def test_times_of_a_device_that_heat_slowed_down_are_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.tools.tune.search_worker.STEADY_S", 0.0)
    known = candidates(DEAR, Behaviour(9.0), *[Behaviour(3.0)] * 9)
    bench = Bench(tmp_path, known, steadiness=Steadiness(throttled=True, why="it is hot"))
    bench.search(9)
    kept = Search([DEAR], bench.log.read()).standings[DEAR.task]
    assert (kept.best, [trial.outcome for trial in kept.trials.values()]) == (None, ["throttled"] * 3)
    assert "3 times in a row; let it cool" in bench.said[-1]


def test_one_that_had_luck_is_not_kept(tmp_path: Path) -> None:
    lucky = Behaviour(3.0, again_ms=8.9)
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), lucky))
    (winner,) = bench.winners(bench.search(1))
    assert (winner.schedule, winner.why_not) == (None, "not faster again")


def test_why_nothing_was_right_is_said_by_the_commonest_reason(tmp_path: Path) -> None:
    crash, wrong = Behaviour(raises=DeviceCrash("it died")), Behaviour(error=1.0)
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), crash, wrong, crash))
    search = bench.search(3)
    assert commonest_reason(list(search.standings[DEAR.task].trials.values())) == "2 of 3: it died"
    assert [winner.why_not for winner in bench.winners(search)] == ["no candidate was right"]


def test_a_task_whose_own_schedule_is_wrong_keeps_nothing_as_nothing_can_be_compared(tmp_path: Path) -> None:
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(error=1.0), Behaviour(1.0)))
    (winner,) = bench.winners(bench.search(1))
    assert winner.schedule is None
    assert winner.why_not.startswith("not right again")


def test_of_candidates_that_are_near_each_other_the_one_that_is_fastest_again_is_kept(tmp_path: Path) -> None:
    lucky, steady = Behaviour(3.0, again_ms=4.0), Behaviour(3.2, again_ms=3.2)
    bench = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), lucky, steady, Behaviour(8.0)))
    (winner,) = bench.winners(bench.search(3))
    assert winner.schedule
    assert (winner.schedule.ms, winner.schedule.untuned_ms) == (3.2, 9.0)


def test_two_do_not_tune_the_same_network_at_once(tmp_path: Path) -> None:
    log = TrialLog(tmp_path, "tasks", "identity", "tiny on G")
    with log.lock(), pytest.raises(Failure, match="is being tuned already"), log.lock():
        pass


def test_trials_go_where_the_time_is() -> None:
    search = Search([CHEAP, DEAR])
    assert [(task.name, seed) for task, seed in search.next(3)] == [("conv_b", 0), ("conv_b", 1), ("conv_b", 2)]
    assert search.next(1, [(DEAR, 0), (DEAR, 2)]) == [(DEAR, 1)]
    search.add(Trial(task=DEAR.task, seed=0, outcome="ok", ms=2.0))
    assert search.next(1) == [(CHEAP, 0)]
    assert search.inference_ms(100.0) == pytest.approx(12.0)


TRIALS = st.lists(
    st.builds(
        Trial,
        task=st.sampled_from([CHEAP.task, DEAR.task, "c" * 16]),
        seed=st.integers(0, 5),
        outcome=st.just("ok"),
        ms=st.none() | st.floats(1e-3, 1e3),
    ),
    max_size=20,
)


@given(TRIALS, st.integers(1, 12))
def test_no_candidate_is_tried_twice_and_none_makes_the_network_slower(trials: list[Trial], count: int) -> None:
    search = Search([CHEAP, DEAR], trials)
    chosen = search.next(count)
    assert len(set(chosen)) == len(chosen)
    assert all(seed not in search.standings[task.task].trials for task, seed in chosen)
    assert len(chosen) == count
    assert 0 <= search.inference_ms(100.0) <= 100.0


def test_a_full_disk_is_said_with_where_and_loses_nothing_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = candidates(DEAR, Behaviour(9.0), Behaviour(3.0), Behaviour(2.0))
    bench = Bench(tmp_path, known)
    bench.search(1)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(RigFailure, match=r"full|No space left") as refused:
        bench.log.append(Trial(task=DEAR.task, seed=1, outcome="ok", ms=2.0))
    monkeypatch.undo()
    assert str(tmp_path) in f"{refused.value.message} {refused.value.hint}"
    assert [trial.seed for trial in bench.log.read()] == [0]


def test_a_search_goes_on_after_a_device_that_was_lost_in_the_middle(tmp_path: Path) -> None:
    lost = {**candidates(DEAR, Behaviour(9.0), Behaviour(3.0), Behaviour(raises=DeviceLost("gone")))}
    with pytest.raises(DeviceLost):
        Bench(tmp_path, lost).search(2)
    again = Bench(tmp_path, candidates(DEAR, Behaviour(9.0), Behaviour(3.0), Behaviour(2.0)))
    standing = again.search(1).standings[DEAR.task]
    assert [standing.trials[seed].ms for seed in (0, 1)] == [3.0, 2.0]
    assert again.shop.asked == [(DEAR.name, 1)]


def test_the_time_that_is_neither_the_devices_nor_the_compilers_is_told_for_each_trial() -> None:
    spent = TimeUse(tried=10, seconds=30.0, device_s=20.0, waited_s=8.0)
    assert spent.rest_s == pytest.approx(0.2)
    assert "10 trials in 30 s: the device was busy for 20 s" in str(spent)


def test_a_file_is_begun_for_the_device_and_one_of_another_release_is_not_added_to(tmp_path: Path) -> None:
    begun = open_schedules(tmp_path / "new", PHONE)
    assert begun.records == ()
    assert begun.origin.limits == TaskLimits.of(PHONE)
    assert (begun.origin.work_group_items, begun.origin.local_memory_bytes) == (256, 16_384)
    Schedules(ORIGIN.model_copy(update={"tvm": "0.1.0"}), ()).write(tmp_path / "old")
    with pytest.raises(UsageError, match=r"found with TVM 0\.1\.0, and this is ") as refused:
        open_schedules(tmp_path / "old", PHONE)
    assert refused.value.hint == "name another file with --out"
    begun.write(tmp_path / "new")
    with pytest.raises(UsageError, match="are for a device with image2d_max_width") as refused:
        open_schedules(tmp_path / "new", replace(PHONE, image2d_max_width=1))
    assert refused.value.hint == "name another file with --out"
