"""From suspicion to verdict: what is measured again, and what that says."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_records import IDENTITY, a_record, sessions
from msgspec import structs

from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome
from harness.judge.compare import Comparison, ComparisonResult, KernelChange, compare_sides, exit_code
from harness.judge.confirm import SessionBudget, settle
from harness.judge.in_turns import Confirmation, Measure, TurnSeries
from harness.judge.report.comparison import export_comparison
from harness.judge.report.verdicts import kernel_tables, undecided, verdict_table
from harness.judge.sides import sides_of
from harness.judge.stats.controls import Fitness
from harness.judge.stats.engine import TurnPlan
from harness.judge.stats.pair import Rules
from harness.judge.stats.session import Noise
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record

RULES = Rules()
TODAY = "2026-01-02T00:00:00.000+00:00"
"""When head is measured; the baselines are of the day before."""


def confirm(plan: TurnPlan, measure: Measure) -> Confirmation:
    """One series in turns, until it is decided or spent."""
    series = TurnSeries("", plan, measure)
    while series.open:
        series.block()
    return series.confirmation


def one_session_against(baseline: list[Record], ms: float, artifact: str = "b") -> ComparisonResult:
    head = sessions(ms, 1, seed=9, artifact=artifact, started_at=TODAY)
    return compare_sides(sides_of(baseline), sides_of(head), RULES)


FROM_RECORDS = "a gate without --from measures again"


def settled(result: ComparisonResult, measure: Measure | str) -> Comparison:
    (comparison,) = settle(result, RULES, lambda _: measure).cases
    return comparison


def device(base_ms: float, head_ms: float, seed: int = 0) -> tuple[Measure, list[Arm]]:
    """A device on which both builds can be run, and what was run on it."""
    asked: list[Arm] = []
    chance = random.Random(seed)

    def measure(side: Arm) -> Record:
        asked.append(side)
        return sessions(base_ms if side is Arm.BASE else head_ms, 1, seed=chance.randrange(1 << 30))[0]

    return measure, asked


@pytest.mark.parametrize("baseline", [1, 4])
def test_a_slowdown_of_the_build_is_confirmed_in_turns_and_the_shell_is_told(baseline: int) -> None:
    measure, asked = device(10, 13)
    comparison = settled(one_session_against(sessions(10, baseline), 13), measure)
    assert comparison.verdict is Verdict.SLOWER
    assert sorted(asked[:3]) == [Arm.BASE, Arm.BASE, Arm.HEAD], "head's first session counts"
    assert comparison.confidence == 0.995
    assert "sessions in turns" in comparison.reasons[0]
    assert exit_code(ComparisonResult([comparison])) is ExitCode.SLOWER


@pytest.mark.parametrize(("base_ms", "head_ms"), [(10, 13), (10, 7), (10, 10)])
def test_a_row_is_of_the_sessions_in_turns_alone(base_ms: float, head_ms: float) -> None:
    """The blessed session measured base at 22 ms: the row must not set the change beside that."""
    measure, _ = device(base_ms, head_ms)
    comparison = settled(one_session_against(sessions(22, 1), head_ms), measure)
    (case,) = export_comparison(ComparisonResult([comparison])).plain()["cases"]
    base, head = case["base"]["latency_ms"], case["head"]["latency_ms"]
    assert base == pytest.approx(base_ms, rel=0.1)
    assert head / base - 1 == pytest.approx(case["relative"])
    assert case["low"] < case["relative"] < case["high"]
    assert f"{case['low']:+.1%} to {case['high']:+.1%}" in verdict_table([comparison])


def test_sessions_in_turns_that_choose_other_settings_end_at_once() -> None:
    asked: list[Arm] = []

    def measure(arm: Arm) -> Record:
        asked.append(arm)
        (record,) = sessions(10, 1, seed=len(asked), settings={"chunk": 512 if arm is Arm.BASE else 256})
        return record

    confirmation = confirm(TurnPlan(RULES), measure)
    assert confirmation.verdict is Verdict.INCONCLUSIVE
    assert "chunk = " in confirmation.reasons[0]
    assert len(set(asked)) == 2
    assert len(asked) <= 3


def test_a_session_that_was_slow_by_chance_is_refuted() -> None:
    measure, _ = device(10, 10)
    comparison = settled(one_session_against(sessions(8, 1), 10), measure)
    assert comparison.verdict is Verdict.SAME
    assert comparison.change
    assert max(-comparison.change.low, comparison.change.high) < RULES.relevant


def test_an_improvement_is_confirmed_too() -> None:
    measure, _ = device(10, 7)
    assert settled(one_session_against(sessions(10, 1), 7), measure).verdict is Verdict.FASTER


KERNELS = (KernelChange("conv2d", 6.0, 9.0, (1, 1), "changed"), KernelChange("add", None, 0.5, (0, 2), "new"))


@pytest.mark.parametrize(("head_ms", "sessions_of_kernels"), [(13, 1), (7, 1), (10, 0)])
def test_what_moved_says_which_kernels_and_what_did_not_costs_no_session(
    head_ms: float, sessions_of_kernels: int
) -> None:
    asked: list[str] = []

    def explain(comparison: Comparison) -> tuple[KernelChange, ...]:
        asked.append(comparison.key.case)
        return KERNELS

    measure, _ = device(10, head_ms)
    (comparison,) = settle(one_session_against(sessions(10), head_ms), RULES, lambda _: measure, explain=explain).cases
    assert len(asked) == sessions_of_kernels
    assert comparison.kernels == KERNELS * sessions_of_kernels
    doubt = "the sessions that watched its kernels do not show that it is faster"
    assert (doubt in comparison.reasons) is (head_ms == 7), "they took longer at head"


def test_kernels_are_printed_with_their_sum_and_exported() -> None:
    comparison = structs.replace(settled(one_session_against(sessions(10), 13), FROM_RECORDS), kernels=KERNELS)
    (text,) = kernel_tables([comparison])
    assert re.search(r"conv2d +6\.000 +9\.000 +\+3\.000 +changed", text)
    assert re.search(r"all kernels +6\.000 +9\.500 +\+3\.500", text)
    (case,) = export_comparison(ComparisonResult([comparison])).plain()["cases"]
    assert [(one["operator"], one["base_ms"], one["change_ms"]) for one in case["kernels"]] == [
        ("conv2d", 6.0, 3.0),
        ("add", None, 0.5),
    ]


def test_kernels_that_cannot_be_watched_are_left_out_with_the_reason() -> None:
    def explain(_: Comparison) -> tuple[KernelChange, ...]:
        raise UsageError("net-clml-float32-untuned launches no kernels", hint="there are none to see")

    measure, _ = device(10, 13)
    (comparison,) = settle(one_session_against(sessions(10), 13), RULES, lambda _: measure, explain=explain).cases
    assert (comparison.verdict, comparison.kernels) == (Verdict.SLOWER, ())
    assert comparison.reasons[-1] == "its kernels were not watched: net-clml-float32-untuned launches no kernels"


def test_what_lies_near_its_baseline_is_measured_until_a_relevant_change_is_excluded() -> None:
    measure, asked = device(10, 10)
    judged = settle(one_session_against(sessions(10, 1), 10.1), RULES, lambda _: measure)
    assert [case.verdict for case in judged.cases] == [Verdict.SAME]
    assert len(asked) >= 7
    assert exit_code(judged) is ExitCode.GOOD
    assert judged.needed_minutes == 0


def test_what_could_not_be_excluded_is_inconclusive_and_says_what_it_could_have_seen() -> None:
    ticks = iter(range(10_000))
    measure, _ = device(10, 10)
    budget = SessionBudget(now=lambda: 60.0 * next(ticks))
    found = settle(one_session_against(sessions(10, 1), 10), RULES, lambda _: measure, 4, None, budget)
    (case,) = found.cases
    assert case.verdict is Verdict.INCONCLUSIVE
    assert case.suspicion is None
    assert re.fullmatch(r"can see \d+\.\d% here; 3\.0% with \d+ more sessions \(\d+ minutes\)", case.reasons[0])
    assert exit_code(found) is ExitCode.GOOD, "it looked, and nothing looks slower"
    assert not found.needed_minutes, "its sessions were up, not the time"


def test_the_time_that_is_asked_for_is_at_most_that_of_all_sessions() -> None:
    """After four sessions that lie far apart, hundreds seem to be needed: more than the verdict may cost."""
    now, chance = [0.0], random.Random(1)

    def measure(_: Arm) -> Record:
        now[0] += 60
        return sessions(10 * chance.choice([0.5, 1, 2]), 1, seed=int(now[0]))[0]

    compared = one_session_against(sessions(10, 1), 10)
    found = settle(compared, RULES, lambda _: measure, 32, None, SessionBudget(4, lambda: now[0]))
    (more,) = re.findall(r"3\.0% with (\d+) more sessions", found.cases[0].reasons[0])
    assert int(more) > 32
    assert found.needed_minutes == 32 - 4


def test_sessions_go_to_what_looks_changed_and_end_with_the_time() -> None:
    """Three cases and time for one: the one that looks slower gets it, and the others say what they lack."""
    names = [f"m{number}-opencl-float32-untuned" for number in range(3)]
    base = [record for name in names for record in sessions(10, case=name)]
    heads = [sessions(13 if name == names[1] else 10, 1, artifact="b", case=name, started_at=TODAY) for name in names]
    now, asked = [0.0], Counter[str]()

    def measurer(case: Comparison) -> Measure:
        measure, _ = device(10, 13 if case.key.case == names[1] else 10)

        def timed(arm: Arm) -> Record:
            now[0] += 10
            asked[case.key.case] += 1
            return measure(arm)

        return timed

    compared = compare_sides(sides_of(base), sides_of([record for head in heads for record in head]), RULES)
    found = settle(compared, RULES, measurer, budget=SessionBudget(1.5, lambda: now[0]))
    assert [case.verdict for case in found.cases] == [Verdict.INCONCLUSIVE, Verdict.SLOWER, Verdict.INCONCLUSIVE]
    assert asked.most_common(1)[0][0] == names[1]
    assert now[0] <= 90, "no block begins that would end after the time"
    assert found.needed_minutes > 0


@pytest.mark.parametrize(
    ("measure", "artifact", "reason", "open_"),
    [
        (FROM_RECORDS, "b", "a gate without --from measures again", Verdict.SLOWER),
        ("the baseline's build is gone", "b", "the baseline's build is gone", Verdict.SLOWER),
        (FROM_RECORDS, "a" * 24, "the artifact is the same, so the compiler did not do it", None),
    ],
)
def test_a_suspicion_that_cannot_be_checked_stays_one_unless_nothing_was_compiled_anew(
    measure: str, artifact: str, reason: str, open_: Verdict | None
) -> None:
    comparison = settled(one_session_against(sessions(10), 20, artifact), measure)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "looks slower, which one session cannot prove" in comparison.reasons[0]
    assert reason in comparison.reasons[0]
    assert comparison.suspicion is open_


OTHER = "tiny-texture-float32-untuned"


def clocked(wall_sd: float, step: float) -> Comparison:
    """A gate of a build whose kernels take longer by `step`, on a clock that is steady to 0.2 %."""
    chance = random.Random(4)

    def session(factor: float, **facts: object) -> Record:
        wall, kernels = (10 * factor * math.exp(chance.gauss(0, sd)) for sd in (wall_sd, 0.002))
        times = {"wall_ms": wall, "device_ms": 0.9 * kernels}
        noisy = {name: [ms * chance.gauss(1, 0.004) for _ in range(10)] for name, ms in times.items()}
        return a_record().model_copy(update={**noisy, **facts})

    head = session(1 + step, artifact="b", started_at=TODAY)
    compared = compare_sides(sides_of([session(1)]), sides_of([head]), RULES)
    return settled(compared, lambda arm: session(1 + step if arm is Arm.HEAD else 1))


def test_a_change_of_the_kernels_too_small_for_the_wall_clock_is_found_by_theirs_which_is_named() -> None:
    comparison = clocked(0.02, 0.015)
    assert comparison.verdict is Verdict.SLOWER
    assert comparison.change
    assert comparison.change.clock == "device_ms"
    assert comparison.change.relative == pytest.approx(0.015, abs=0.006)
    assert "by the kernels' clock (device_ms)" in comparison.reasons
    assert export_comparison(ComparisonResult([comparison])).plain()["cases"][0]["clock"] == "device_ms"


def test_what_is_the_same_by_both_clocks_is_the_same() -> None:
    comparison = clocked(0.008, 0.0)
    assert comparison.verdict is Verdict.SAME
    assert comparison.change
    assert comparison.change.clock == "wall_ms"


def test_turns_in_which_the_clock_goes_with_the_build_decide_nothing() -> None:
    measure, _ = device(10, 13)

    def clocked(side: Arm) -> Record:
        shares = {"800": 1.0} if side is Arm.BASE else {"600": 1.0}
        return measure(side).model_copy(update={"steadiness": {"clock_histogram": shares}})

    comparison = settled(one_session_against(sessions(10), 13), clocked)
    assert (comparison.verdict, comparison.suspicion) == (Verdict.INCONCLUSIVE, Verdict.SLOWER)
    assert comparison.reasons[0].startswith("the GPU ran at other clocks: base 100% of its time at 800 MHz")


def test_the_same_artifact_on_a_rebuilt_runtime_leaves_a_suspicion_open() -> None:
    old, rebuilt = (replace(IDENTITY, runtime=digest * 16) for digest in "12")
    head = sides_of(sessions(20, 1, seed=9, identity=rebuilt))
    comparison = settled(compare_sides(sides_of(sessions(10, identity=old)), head, RULES), FROM_RECORDS)
    assert comparison.suspicion is Verdict.SLOWER
    assert "the artifact is the same, so the compiler did not do it" in comparison.reasons[0]
    assert "the phone's runtime is another one (base 11111111, head 22222222)" in comparison.reasons


def with_a_case_that_is_decided(ms: float) -> ComparisonResult:
    """A case about `ms` after 10 that nothing can measure again, beside one that is proved the same."""
    base, head = [*sessions(10), *sessions(5, 8, case=OTHER)], sessions(5, 8, seed=1, artifact="b", case=OTHER)
    result = compare_sides(sides_of(base), sides_of([*sessions(ms, 1, seed=9, artifact="b"), *head]), RULES)
    return settle(result, RULES, lambda _: FROM_RECORDS)


def test_a_suspicion_that_stays_open_is_noticed_by_the_shell_and_named_in_the_last_line() -> None:
    result = with_a_case_that_is_decided(13)
    assert [case.verdict for case in result.cases] == [Verdict.INCONCLUSIVE, Verdict.SAME]
    assert exit_code(result) is ExitCode.UNDECIDED
    assert undecided(result).startswith("undecided: tiny-opencl-float32-untuned looks slower (+2")
    assert export_comparison(result).plain()["cases"][0]["suspicion"] == "slower"


def test_what_looks_faster_and_stays_open_is_named_and_no_reason_to_fail() -> None:
    result = with_a_case_that_is_decided(7)
    assert exit_code(result) is ExitCode.GOOD
    assert "looks faster (-" in undecided(result)
    assert undecided(with_a_case_that_is_decided(10)) == ""


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (Verdict.WRONG, ExitCode.WRONG_OR_BROKEN),
        (Verdict.BROKEN, ExitCode.WRONG_OR_BROKEN),
        (Verdict.SLOWER, ExitCode.SLOWER),
        (Verdict.SAME, ExitCode.UNDECIDED),
        (Verdict.NEW, ExitCode.UNDECIDED),
    ],
)
def test_findings_come_before_what_is_undecided(other: Verdict, code: ExitCode) -> None:
    first, second = with_a_case_that_is_decided(13).cases
    assert exit_code(ComparisonResult([first, structs.replace(second, verdict=other)])) is code


def test_a_failure_of_the_rig_comes_before_what_is_undecided() -> None:
    unfit = Fitness(False, ("the rig changed",))
    assert exit_code(replace(with_a_case_that_is_decided(13), fitness=unfit)) is ExitCode.RIG_FAILURE


@pytest.mark.parametrize("beta", [0.05, 0.2])
def test_the_confidence_of_a_verdict_is_that_of_the_rules_in_force(beta: float) -> None:
    measure, _ = device(10, 10)
    found = confirm(TurnPlan(Rules(beta=beta)), measure)
    assert found.verdict is Verdict.SAME
    assert found.change
    assert found.change.confidence == 1 - beta


def test_a_session_that_does_not_end_well_ends_the_confirmation() -> None:
    asked: list[Arm] = []

    def measure(side: Arm) -> Record:
        asked.append(side)
        return a_record(outcome=Outcome.DEVICE_LOST, message="unplugged")

    comparison = settled(one_session_against(sessions(10), 20), measure)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "again: device-lost: unplugged" in comparison.reasons[0]
    assert len(asked) == 1


def test_a_build_that_turns_out_wrong_while_it_is_measured_again_is_wrong() -> None:
    def measure(side: Arm) -> Record:
        return sessions(10, 1)[0] if side is Arm.BASE else a_record(outcome=Outcome.WRONG_RESULT, message="off")

    comparison = settled(one_session_against(sessions(10), 20), measure)
    assert comparison.verdict is Verdict.WRONG


def test_a_device_without_a_steady_hand_ends_inconclusive_within_its_budget() -> None:
    chance, asked = random.Random(1), []

    def measure(side: Arm) -> Record:
        asked.append(side)
        return sessions(10 * chance.choice([0.5, 1, 2]), 1, seed=len(asked))[0]

    (comparison,) = settle(one_session_against(sessions(10), 20), RULES, lambda _: measure, 8).cases
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert len(asked) == 7


def test_learned_noise_decides_with_fewer_sessions() -> None:
    def needed(noise: Noise | None) -> int:
        measure, asked = device(10, 10.6)
        result = one_session_against(sessions(10), 10.6)
        noises = {case.key: noise for case in result.cases} if noise else {}
        (comparison,) = settle(result, RULES, lambda _: measure, 64, noises).cases
        assert comparison.verdict is Verdict.SLOWER
        return len(asked)

    assert needed(Noise(0.01, 20)) < needed(None)


def test_in_an_unfit_run_nothing_passes_by_lying_near_its_baseline() -> None:
    result = replace(one_session_against(sessions(10, 1), 10.1), fitness=Fitness(False, ("the rig changed",)))
    assert settled(result, FROM_RECORDS).verdict is Verdict.INCONCLUSIVE


def test_in_an_unfit_run_a_suspect_is_measured_in_turns_all_the_same() -> None:
    unfit = Fitness(False, ("the rig changed",))
    still, slower = (replace(one_session_against(sessions(8), ms), fitness=unfit) for ms in (10, 13))
    assert settled(still, device(10, 10)[0]).verdict is Verdict.SAME
    assert settled(slower, device(10, 13)[0]).verdict is Verdict.SLOWER


def test_several_sessions_a_side_may_prove_a_change_without_measuring_again() -> None:
    head = sessions(13, seed=3, artifact="b")
    result = compare_sides(sides_of(sessions(10)), sides_of(head), RULES)
    assert settled(result, FROM_RECORDS).verdict is Verdict.SLOWER


def test_an_unfit_session_is_neither_passed_nor_suspected() -> None:
    result = compare_sides(sides_of(sessions(10)), sides_of([a_record(wall_ms=[5.0] * 10, artifact="b")]), RULES)
    comparison = settled(result, FROM_RECORDS)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "the clock" in " ".join(comparison.reasons)


def bimodal(chance: random.Random) -> float:
    return chance.choice([1.0, 1.08]) * chance.gauss(1, 0.005)


def heavy_tailed(chance: random.Random) -> float:
    return chance.gauss(1, 0.01) * (chance.uniform(1.2, 3) if chance.random() < 0.1 else 1)


@pytest.mark.parametrize(
    "bias", [lambda chance: chance.gauss(1, 0.01), lambda chance: chance.gauss(1, 0.08), bimodal, heavy_tailed]
)
@pytest.mark.parametrize("noise", [None, Noise(0.01, 15)], ids=["uncalibrated", "calibrated"])
def test_the_same_code_ten_times_in_a_row_raises_no_alarm(
    bias: Callable[[random.Random], float], noise: Noise | None
) -> None:
    chance = random.Random(7)

    def session(artifact: str) -> Record:
        middle = 10 * bias(chance)
        return a_record(artifact=artifact, wall_ms=[middle * chance.gauss(1, 0.02) for _ in range(10)])

    verdicts = []
    for _ in range(10):
        base, head = (
            sides_of([session("a") for _ in range(4)]),
            sides_of([session("b").model_copy(update={"started_at": TODAY})]),
        )
        noises = dict.fromkeys(base, noise) if noise else {}
        result = compare_sides(base, head, RULES, noises=noises)
        (comparison,) = settle(result, RULES, lambda _: lambda side: session(side.value), 16, noises).cases
        verdicts.append(comparison.verdict)
    assert set(verdicts) <= {Verdict.SAME, Verdict.INCONCLUSIVE}


def test_a_suite_that_did_not_change_raises_no_alarm() -> None:
    cases = [f"m{number}-opencl-float32-untuned" for number in range(40)]
    base = [record for seed, case in enumerate(cases) for record in sessions(10, 1, seed=seed, case=case)]
    head = [
        record
        for seed, case in enumerate(cases)
        for record in sessions(10, 1, seed=500 + seed, case=case, artifact="b", started_at=TODAY)
    ]
    result = settle(compare_sides(sides_of(base), sides_of(head), RULES), RULES, lambda _: device(10, 10)[0])
    assert exit_code(result) is ExitCode.GOOD
