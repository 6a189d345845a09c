"""Robust location and spread, and what makes the samples of a session unfit."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.stats import robust
from harness.judge.stats.robust import effective_sizes, modes, trend_p, warm_ups
from harness.judge.stats.session import (
    SampleLimits,
    check,
    check_each,
    location_ms,
    locations_ms,
    summarise,
    summarise_each,
)

TIMES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=30)


def noise(count: int, sd: float = 0.02, seed: int = 0) -> list[float]:
    return [float(value) for value in 20 * np.exp(sd * np.random.default_rng(seed).normal(size=count))]


def autocorrelated(count: int, correlation: float, seed: int = 0) -> list[float]:
    values = np.random.default_rng(seed).normal(size=count)
    for index in range(1, count):
        values[index] = correlation * values[index - 1] + math.sqrt(1 - correlation**2) * values[index]
    return [float(value) for value in 20 * np.exp(0.02 * values)]


def test_known_locations() -> None:
    assert robust.median([3, 1, 2]) == 2
    assert robust.location([1, 2, 9]) == 3.5, "the median of 1, 1.5, 2, 5, 5.5, 9"
    assert robust.spread([1, 2, 3, 4, 100]) == pytest.approx(1.4826)


@given(TIMES, st.floats(0.01, 100))
def test_location_and_spread_scale_with_the_unit(times: list[float], factor: float) -> None:
    scaled = [factor * time for time in times]
    assert robust.location(scaled) == pytest.approx(factor * robust.location(times))
    assert robust.spread(scaled) == pytest.approx(factor * robust.spread(times), abs=1e-9 * factor * max(times))


@given(TIMES, st.randoms())
def test_location_does_not_depend_on_order(times: list[float], shuffler: object) -> None:
    shuffled = list(times)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    assert robust.location(shuffled) == pytest.approx(robust.location(times))


def test_a_quarter_of_wild_values_does_not_move_the_location_far() -> None:
    assert robust.location([*noise(15), *[1e6] * 5]) == pytest.approx(20, rel=0.05)


def worth_of(values: Sequence[float]) -> float:
    return float(effective_sizes(np.array([values], float))[0])


def test_independent_samples_count_in_full_and_resembling_ones_for_less() -> None:
    assert worth_of(noise(400)) > 300
    assert worth_of(autocorrelated(400, 0.8)) == pytest.approx(400 * 0.2 / 1.8, rel=0.5)
    assert worth_of([5.0] * 10) == 1


@given(TIMES)
def test_samples_are_worth_between_one_and_their_number(times: list[float]) -> None:
    assert 1 <= worth_of(times) <= len(times)


def test_the_warm_up_is_what_lies_outside_the_settled_half() -> None:
    rows = np.array([[30, 28, 25, 20, 20.1, 19.9, 20, 20.1, 20, 19.9], [20, *noise(9)]])
    assert warm_ups(rows).tolist() == [3, 0]


def test_two_modes_are_told_from_one() -> None:
    explained, apart = modes(np.array([[1.0] * 5 + [2.0] * 5, noise(10, 1.0), [3.0] * 10]))
    assert explained[0] == pytest.approx(1)
    assert apart[0] == pytest.approx(1)
    assert explained[1] < 0.8
    assert explained[2] == 0


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([], "0 samples"),
        ([20.0] * 4, "4 samples"),
        ([20.0] * 12, "the clock"),
        ([*noise(11), 0.0], "no times"),
        ([*noise(11), -3.0], "no times"),
        ([*noise(11), math.nan], "no times"),
        ([*noise(11), math.inf], "no times"),
        ([*noise(11), "fast"], "no times"),
        ([*noise(11), None], "no times"),
        ([40, 35, 30, 26, 23, *noise(15)], "warm-up"),
        ([value * (1 + 0.01 * index) for index, value in enumerate(noise(20))], "drift"),
        ([value * (1.2 if index % 2 else 1) for index, value in enumerate(noise(20))], "two groups"),
        ([20 + math.sin(math.pi * index / 40) for index in range(40)], "depend on each other"),
    ],
)
def test_unsound_samples_are_refused_by_name(samples: list[float], reason: str) -> None:
    quality = check(samples)
    assert not quality.ok
    assert any(reason in one for one in quality.reasons), quality.reasons


@pytest.mark.parametrize("sd", [0.001, 0.02, 0.08])
def test_sound_samples_are_seldom_refused(sd: float) -> None:
    refused = sum(not check(noise(10, sd, seed)).ok for seed in range(300))
    assert refused <= 12, "4 % of 300"


def test_limits_can_be_widened() -> None:
    assert not check(noise(4)).ok
    assert check(noise(4), SampleLimits(fewest=3)).ok


@given(st.lists(st.one_of(st.floats(), st.integers(), st.none(), st.text()), max_size=15))
def test_no_input_raises(samples: list[float]) -> None:
    quality = check(samples)
    assert quality.ok == (not quality.reasons)


@given(st.lists(st.lists(st.floats(-1.0, 1e6) | st.just(math.inf), max_size=30), max_size=12))
def test_many_sessions_are_located_as_each_is(sessions: list[list[float]]) -> None:
    assert locations_ms(sessions) == pytest.approx([location_ms(one) for one in sessions], rel=1e-12, nan_ok=True)


ODD = st.sampled_from([0.0, 1, None, "1"])
SESSIONS = st.lists(st.lists(st.floats(1.0, 1.1) | ODD, max_size=14), max_size=6)


@given(st.lists(SESSIONS, max_size=6))
def test_many_sides_are_summarised_as_each_is(sides: list[list[list[float]]]) -> None:
    sessions = [session for side in sides for session in side]
    assert [(one.ok, one.reasons) for one in check_each(sessions)] == [
        (one.ok, one.reasons) for one in map(check, sessions)
    ]
    for together, alone in zip(summarise_each(sides), map(summarise, sides), strict=True):
        assert together.refused == alone.refused
        for one, other in zip(together.good, alone.good, strict=True):
            assert (one.log_ms, one.error) == pytest.approx((other.log_ms, other.error), rel=1e-9)


@given(st.lists(st.integers(0, 1000) | st.integers(0, 3), min_size=2, max_size=60))
def test_the_trends_probability_is_scipys(samples: list[int]) -> None:
    from scipy.stats import kendalltau  # takes a second, in each process that collects

    expected = kendalltau(range(len(samples)), samples).pvalue
    assert trend_p(samples) == pytest.approx(1.0 if math.isnan(expected) else expected, rel=1e-6, abs=1e-14)
