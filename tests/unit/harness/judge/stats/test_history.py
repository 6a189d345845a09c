"""Steps of a series."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.stats.history import segment
from harness.judge.stats.session import Noise


def series(count: int, seed: int = 0, sd: float = 0.012) -> list[float]:
    return [float(value) for value in 20 * np.exp(sd * np.random.default_rng(seed).normal(size=count))]


def stepped(before: int, after: int, change: float, seed: int = 0) -> list[float]:
    values = series(before + after, seed)
    return [value * (1 + change) if index >= before else value for index, value in enumerate(values)]


@pytest.mark.parametrize("change", [0.06, -0.06, 1.0])
def test_a_step_is_found_where_it_is(change: float) -> None:
    (step,) = segment(stepped(30, 15, change))
    assert step.index in (29, 30, 31)
    assert step.relative == pytest.approx(change, abs=0.02 * (1 + change))
    assert step.after_ms / step.before_ms == pytest.approx(1 + step.relative)
    assert step.p <= 0.001
    assert step.low < change < step.high


def test_up_and_down_again_are_two_steps() -> None:
    values = [value * (1.08 if 20 <= index < 40 else 1) for index, value in enumerate(series(60))]
    up, down = segment(values)
    assert (up.index, down.index) == (20, 40)
    assert up.relative > 0 > down.relative


def test_an_outlier_that_comes_back_is_no_step() -> None:
    values = series(40)
    values[20] *= 1.3
    values[30], values[31] = values[30] * 1.2, values[31] * 1.2
    assert segment(values) == []


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize(("slow", "steps"), [(2, 0), (3, 0), (6, 1)])
def test_where_one_in_ten_is_off_a_few_in_a_row_at_an_end_are_no_step(first: bool, slow: int, steps: int) -> None:
    values = series(50, sd=0.004)
    for index in (6, 15, 23, 31, 40):
        values[index] *= 1.08
    for index in range(slow):
        values[index if first else -1 - index] *= 1.08
    assert len(segment(values)) == steps


def test_without_outliers_the_same_few_are_a_step() -> None:
    assert len(segment(stepped(47, 3, 0.08))) == 1


def test_a_step_is_known_a_few_commits_after_it() -> None:
    assert not segment(stepped(40, 1, 0.08)), "one point may yet come back"
    assert [step.index for step in segment(stepped(40, 5, 0.08))] == [40]


def test_steps_that_do_not_matter_are_merged() -> None:
    values = stepped(40, 40, 0.02)
    assert len(segment(values)) == 1
    assert segment(values, relevant=0.03) == []


def test_indices_count_the_series_as_given() -> None:
    values = [math.nan, *stepped(30, 15, 0.1)]
    values.insert(10, 0.0)
    assert segment(values)[0].index == 32


def drifting(count: int, seed: int) -> list[float]:
    return [value * (1 + 0.002 * index) for index, value in enumerate(series(count, seed))]


def test_a_drift_is_no_step_and_hides_none() -> None:
    assert [seed for seed in range(40) if segment(drifting(57, seed))] == []
    for seed in range(10):
        values = [value * (1.05 if index >= 45 else 1) for index, value in enumerate(drifting(57, seed))]
        (step,) = segment(values)
        assert abs(step.index - 45) <= 1
        assert step.trend
        assert step.low < 0.05 < step.high


def test_neighbours_that_resemble_each_other_make_no_step() -> None:
    alarms = 0
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(size=57)
        for index in range(1, len(noise)):
            noise[index] = 0.8 * noise[index - 1] + 0.6 * noise[index]
        alarms += bool(segment((20 * np.exp(0.012 * noise)).tolist()))
    assert alarms <= 1


def test_a_step_is_found_among_neighbours_that_resemble_each_other() -> None:
    noise = np.random.default_rng(3).normal(size=100)
    for index in range(1, len(noise)):
        noise[index] = 0.8 * noise[index - 1] + 0.6 * noise[index]
    (step,) = segment((20 * np.exp(0.012 * noise + 0.08 * (np.arange(100) >= 60))).tolist())
    assert step.index == 60
    assert step.low < 0.083 < step.high


def test_a_long_history_keeps_all_its_steps() -> None:
    places = list(range(80, 1000, 80))
    shift = sum((-1) ** number * 0.06 * (np.arange(1000) >= place) for number, place in enumerate(places))
    steps = segment((np.array(series(1000)) * np.exp(shift)).tolist(), relevant=0.03)
    assert len(steps) == len(places)
    assert all(abs(step.index - place) <= 2 for step, place in zip(steps, places, strict=True))


def test_two_slow_sessions_in_a_row_are_no_step_where_one_in_ten_is_slow() -> None:
    alarms = 0
    for seed in range(100):
        slow = np.random.default_rng([seed, 1]).random(57) < 0.1
        alarms += bool(segment([ms * (1.05 if odd else 1) for ms, odd in zip(series(57, seed), slow, strict=True)]))
    assert alarms <= 2


def test_a_coarse_clock_makes_no_step() -> None:
    flips = [[20.0 + 0.2 * bit for bit in np.random.default_rng(seed).random(57) < 0.3] for seed in range(100)]
    assert sum(bool(segment(values)) for values in flips) <= 2
    assert [step.index for step in segment([20.0, 20.2] * 20 + [21.4, 21.6] * 6)] == [40]


def test_a_short_series_is_judged_by_what_is_known_of_the_noise_and_not_at_all_without() -> None:
    known = Noise(0.005, 8)
    assert [step.index for step in segment([20.0, 20.05, 26.0], noise=known)] == [2]
    assert segment([20.0, 20.05, 20.4], noise=known) == []
    assert segment([20.0, 26.0]) == []


@pytest.mark.parametrize("values", [[], [20.0] * 5, [math.nan] * 50, ["fast"] * 10])
def test_too_few_points_have_no_step(values: list[float]) -> None:
    assert segment(values) == []


def test_a_constant_series_has_no_step_and_one_with_two_levels_has() -> None:
    assert segment([20.0] * 30) == []
    assert [step.index for step in segment([20.0] * 15 + [22.0] * 15)] == [15]


@pytest.mark.parametrize("count", [6, 10, 30, 80])
def test_false_alarms_are_rare(count: int) -> None:
    alarms = sum(bool(segment(series(count, seed))) for seed in range(200))
    assert alarms <= 2, "0.1 % of 200, and chance"


def test_heavy_tails_raise_few_alarms() -> None:
    generator = np.random.default_rng(1)
    tailed = [20 * np.exp(0.01 * generator.standard_t(2, size=60)) for _ in range(100)]
    assert sum(bool(segment(values.tolist(), relevant=0.03)) for values in tailed) <= 3


@given(st.lists(st.floats(0.1, 1000), min_size=6, max_size=25), st.floats(0.01, 100))
def test_the_unit_moves_no_step(values: list[float], factor: float) -> None:
    plain, scaled = segment(values), segment([factor * value for value in values])
    assert [step.index for step in plain] == [step.index for step in scaled]


@given(st.lists(st.floats(), max_size=20))
def test_no_numbers_raise(values: list[float]) -> None:
    segment(values)
    segment(values, noise=Noise(0.01, 4))
