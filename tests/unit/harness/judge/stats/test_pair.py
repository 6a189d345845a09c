"""Base against head, and a whole suite of such comparisons."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from harness.judge.stats.engine import compare, compare_sessions, compare_summaries, estimate_sides
from harness.judge.stats.pair import Change, Estimate, Rules
from harness.judge.stats.session import Noise, SampleLimits, SessionSummary, summarise
from harness.judge.stats.suite import adjusted_p_values, flips, geometric_mean, hold
from harness.judge.verdict import Verdict

Sessions = list[list[float]]
MIRROR = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}


def sessions(count: int, ms: float = 20.0, seed: int = 0, bias: float = 0.01, cv: float = 0.02) -> Sessions:
    generator = np.random.default_rng([seed, count, int(1000 * ms)])
    logs = bias * generator.normal(size=(count, 1)) + cv * generator.normal(size=(count, 10))
    return [[float(value) for value in row] for row in ms * np.exp(logs)]


def located(generator: np.random.Generator, count: int, ms: float = 20.0, sd: float = 0.012) -> list[SessionSummary]:
    return [SessionSummary(math.log(ms) + sd * float(generator.normal()), 0.006) for _ in range(count)]


def test_a_clear_slowdown_is_slower_with_an_interval_around_it() -> None:
    change = compare(sessions(6), sessions(6, 22.0))
    assert change.verdict is Verdict.SLOWER
    assert change.low < 0.1 < change.high
    assert change.delta_ms == pytest.approx(2, rel=0.2)
    assert change.confidence == 0.995
    assert change.sessions == (6, 6)
    assert change.reasons == ()


def test_no_change_is_same_once_a_relevant_one_is_excluded() -> None:
    change = compare(sessions(8), sessions(8, seed=1))
    assert change.verdict is Verdict.SAME
    assert change.confidence >= 0.95


def test_too_little_evidence_is_inconclusive_and_says_what_it_admits() -> None:
    change = compare(sessions(2), sessions(2, 20.8))
    assert change.verdict is Verdict.INCONCLUSIVE
    assert "includes both no change and a relevant one (3.0%)" in change.reasons[0]
    assert change.confidence == 0


def test_a_certain_change_too_small_to_matter_is_same() -> None:
    base, head = sessions(20, bias=0.001, cv=0.001), sessions(20, 20.2, bias=0.001, cv=0.001)
    change = compare(base, head)
    assert change.p < 0.001
    assert change.verdict is Verdict.SAME


def test_a_change_below_the_absolute_floor_is_none() -> None:
    base, head = sessions(8, 0.1), sessions(8, 0.12)
    assert compare(base, head, Rules(floor_ms=0.05)).verdict is Verdict.SAME
    assert compare(base, head, Rules(floor_ms=0.001)).verdict is Verdict.SLOWER


def test_many_samples_of_one_biased_session_are_no_evidence() -> None:
    base, head = sessions(1, cv=0.003), sessions(1, 22.0, cv=0.003)
    change = compare([base[0] * 20], [head[0] * 20])
    assert change.verdict is Verdict.INCONCLUSIVE
    assert "1 session against 1" in change.reasons[0]


def test_calibrated_noise_lets_one_session_a_side_speak() -> None:
    base, head = sessions(1), sessions(1, 23.0)
    assert compare(base, head, noise=Noise(0.012, 15)).verdict is Verdict.SLOWER
    assert compare(base, sessions(1, 20.6), noise=Noise(0.012, 15)).verdict is Verdict.INCONCLUSIVE


def test_calibrated_noise_is_set_aside_by_a_noisier_run() -> None:
    change = compare(sessions(4, bias=0.1), sessions(4, 21.5, bias=0.1), noise=Noise(0.002, 30))
    assert change.verdict is Verdict.INCONCLUSIVE
    assert any("noisier than the learned noise" in reason for reason in change.reasons)


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ([], [], "base has no session"),
        (sessions(4), [], "head has no session"),
        (sessions(1), sessions(1), "too few to measure the noise"),
        (sessions(4), [[]] * 4, "only 0 of 4 sessions of head"),
        (sessions(4), [[20.0, 21.0]] * 4, "2 samples"),
        (sessions(4), [[math.nan] * 10] * 4, "no times"),
        (sessions(4), [[0.0] * 10] * 4, "no times"),
        (sessions(4), [[-1.0] * 10] * 4, "no times"),
        ([[20.0] * 10] * 4, [[30.0] * 10] * 4, "the clock"),
    ],
)
def test_bad_input_is_inconclusive_with_its_reason(base: Sessions, head: Sessions, reason: str) -> None:
    change = compare(base, head)
    assert change.verdict is Verdict.INCONCLUSIVE
    assert any(reason in one for one in change.reasons), change.reasons
    assert math.isnan(change.p)


def test_sides_of_two_days_bear_the_noise_between_days() -> None:
    base, head = summarise(sessions(8)), summarise(sessions(8, 22.0))
    assert compare_summaries(base, head).verdict is Verdict.SLOWER
    apart = compare_summaries(base, head, days=(1, 1))
    assert apart.verdict is Verdict.INCONCLUSIVE
    assert any("not measured in turns" in reason for reason in apart.reasons)
    known = Noise(0.012, 20, day_sd=0.004, day_df=20)
    assert compare_summaries(base, head, noise=known, days=(1, 1)).verdict is Verdict.SLOWER
    assert compare_summaries(base, summarise(sessions(8, 40.0)), days=(1, 1)).verdict is Verdict.SLOWER


def test_days_that_differ_by_themselves_are_no_finding() -> None:
    """Days 2 % apart, six sessions on each: a test that counts sessions alone finds a change in every fourth."""
    generator, found = np.random.default_rng(3), []
    for _ in range(400):
        days = 0.02 * generator.normal(size=2)
        base, head = (summarise([])._replace(good=located(generator, 6, 20 * math.exp(day), 0.01)) for day in days)
        found.append([compare_summaries(base, head, days=of).verdict.changed for of in (None, (1, 1))])
    blind, aware = np.mean(found, axis=0)
    assert blind > 0.2
    assert aware <= 0.02


def test_a_side_that_lost_more_than_half_of_its_sessions_has_no_verdict() -> None:
    change = compare(sessions(5), [*sessions(2, 40.0), *[[math.nan] * 10] * 3])
    assert change.verdict is Verdict.INCONCLUSIVE
    assert change.reasons[0] == "only 2 of 5 sessions of head can be used"


def test_calibrated_noise_joins_in_by_its_degrees_of_freedom() -> None:
    base, head = ([SessionSummary(log, 0.001) for log in logs] for logs in ((1.0, 1.02), (1.1, 1.12)))
    estimate = estimate_sides(base, head, Noise(0.02, 6))
    assert estimate is not None
    variance = (2 * 0.0002 + 6 * 0.0004) / 8
    assert estimate.df == 8
    assert estimate.error == pytest.approx(math.sqrt(variance))


def test_one_bad_session_is_left_out_and_named() -> None:
    change = compare(sessions(6), [*sessions(5, 23.0, seed=2), [math.nan] * 10])
    assert change.verdict is Verdict.SLOWER
    assert change.sessions == (6, 5)
    assert change.reasons == ("head session 6: 10 of 10 samples are no times (the first: nan)",)


def test_sessions_of_different_lengths_compare() -> None:
    head = [samples[: 5 + number] for number, samples in enumerate(sessions(5, 23.0))]
    assert compare(sessions(5), head).verdict is Verdict.SLOWER


def test_sessions_that_agree_to_the_last_digit_are_judged_by_their_own_noise() -> None:
    same = sessions(1)[0]
    assert compare([same] * 4, [same] * 4).verdict is Verdict.SAME


@given(st.integers(0, 50), st.sampled_from([0.8, 0.95, 1.0, 1.04, 1.3]), st.integers(2, 5), st.integers(2, 5))
def test_swapping_the_sides_swaps_the_verdict(seed: int, ratio: float, bases: int, heads: int) -> None:
    base, head = sessions(bases, seed=seed), sessions(heads, 20 * ratio, seed=seed + 1)
    there, back = compare(base, head), compare(head, base)
    assert back.verdict is MIRROR.get(there.verdict, there.verdict)
    assert 1 + back.relative == pytest.approx(1 / (1 + there.relative))
    assert back.p == pytest.approx(there.p)


@given(st.integers(0, 50), st.floats(0.01, 100), st.randoms())
def test_unit_and_order_of_sessions_change_nothing(seed: int, factor: float, shuffler: object) -> None:
    rules, limits = Rules(floor_ms=0.0), SampleLimits()
    base, head = sessions(4, seed=seed), sessions(4, 21.0, seed=seed)
    plain = compare(base, head, rules, limits=limits)
    shuffler.shuffle(base)  # type: ignore[attr-defined]
    scaled = [[[factor * sample for sample in samples] for samples in side] for side in (base, head)]
    moved = compare(scaled[0], scaled[1], rules, limits=limits)
    assert (moved.verdict, moved.sessions) == (plain.verdict, plain.sessions)
    assert moved.relative == pytest.approx(plain.relative)


@given(st.lists(st.lists(st.floats(), max_size=8), max_size=4), st.lists(st.lists(st.floats(), max_size=8), max_size=4))
def test_no_numbers_raise_and_none_pass_silently(base: Sessions, head: Sessions) -> None:
    change = compare(base, head)
    assert change.verdict is not Verdict.INCONCLUSIVE or change.reasons


def test_false_alarms_and_power_are_as_stated() -> None:
    generator = np.random.default_rng(7)
    noise = Noise(0.012, 15)
    still = [compare_sessions(located(generator, 4), located(generator, 4), noise=noise) for _ in range(2000)]
    assert sum(change.verdict.changed for change in still) <= 30, "0.5 % each way"
    slower = [compare_sessions(located(generator, 4), located(generator, 4, 21.0), noise=noise) for _ in range(300)]
    assert sum(change.verdict is Verdict.SLOWER for change in slower) >= 285, "95 %"


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(8)
    rules = Rules(alpha=0.05, beta=0.05)
    changes = [compare_sessions(located(generator, 4), located(generator, 5, 21.0), rules) for _ in range(1000)]
    assert 0.88 <= np.mean([change.low <= 0.05 <= change.high for change in changes]) <= 0.96


def test_a_suite_keeps_only_alarms_that_all_series_together_admit() -> None:
    chance = Change(Verdict.SLOWER, relative=0.04, confidence=0.996, p=0.004)
    quiet = [Change(Verdict.SAME, relative=0.0, p=0.2 + index / 200) for index in range(99)]
    (held, *rest) = hold([chance, *quiet])
    assert held.verdict is Verdict.INCONCLUSIVE
    assert "among 100 series" in held.reasons[0]
    assert rest == quiet
    assert hold([structs.replace(chance, p=1e-5), *quiet])[0].verdict is Verdict.SLOWER


def test_what_was_not_tested_does_not_count_among_the_series() -> None:
    assert adjusted_p_values([0.01, math.nan, 0.04]) == [0.02, pytest.approx(math.nan, nan_ok=True), 0.04]


@given(st.lists(st.floats(0, 1), min_size=1))
def test_adjusted_p_values_are_scipys(p_values: list[float]) -> None:
    from scipy.stats import false_discovery_control  # takes a second, in each process that collects

    assert adjusted_p_values(p_values) == pytest.approx(false_discovery_control(p_values))
    assert hold([]) == []


def test_a_suite_without_a_change_seldom_raises_an_alarm() -> None:
    generator = np.random.default_rng(9)
    suites = [
        [compare_sessions(located(generator, 4), located(generator, 4), noise=Noise(0.012, 15)) for _ in range(50)]
        for _ in range(40)
    ]
    assert sum(any(change.verdict.changed for change in hold(suite)) for suite in suites) <= 4


def test_the_geometric_mean_counts_series_alike_and_names_what_it_left_out() -> None:
    changes = [
        Change(Verdict.SLOWER, relative=1.0),
        Change(Verdict.FASTER, relative=-0.5),
        Change(Verdict.INCONCLUSIVE),
    ]
    whole = geometric_mean(changes)
    assert whole.ratio == pytest.approx(1)
    assert whole.low < 1 < whole.high
    assert (whole.series, whole.left_out) == (2, 1)
    assert math.isnan(geometric_mean([]).ratio)
    assert geometric_mean(changes[:1]).high == math.inf


def test_a_ranking_flips_only_when_both_orders_are_certain() -> None:
    base = {"texture": sessions(5, 20.0), "opencl": sessions(5, 25.0), "clml": sessions(5, 20.1, seed=3)}
    head = {"texture": sessions(5, 25.0, seed=1), "opencl": sessions(5, 20.0, seed=1)}
    (flip,) = flips(base, head)
    assert (flip.was_faster, flip.now_faster) == ("texture", "opencl")
    assert flip.before == pytest.approx(0.25, abs=0.05)
    assert flip.after == pytest.approx(-0.2, abs=0.05)
    assert flips(base, base) == []


def test_base_and_head_lie_around_the_location_as_far_apart_as_the_shift() -> None:
    estimate = Estimate(math.log(1.21), 0.01, 6, 11.0)
    assert estimate.base_ms == pytest.approx(10.0)
    assert estimate.head_ms == pytest.approx(12.1)
