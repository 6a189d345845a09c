"""Small drawings: what they say stays within them, and no sample is left out of their words."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.outcome import Outcome
from harness.judge.history.results import Point
from harness.judge.report.strips import WIDTH, interval_strip, noise_ms, samples_strip, spark_bounds, sparkline
from harness.judge.stats.sample_summary import summarise_samples

TIMES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=50)
FRACTIONS = st.floats(-10, 10)


def places(svg: str) -> list[float]:
    """Every place from left to right that a shape of a drawing begins or ends at."""
    return [float(x) for x in re.findall(r'[MLH ]x?=?"?(-?\d+(?:\.\d+)?)(?= \d|H|v|")', svg.partition(">")[2])]


@given(st.lists(TIMES, min_size=1, max_size=9))
def test_every_sample_is_a_dot_within_the_strip(sessions: list[list[float]]) -> None:
    svg = str(samples_strip(sessions, summarise_samples([ms for one in sessions for ms in one]), "wall time"))
    (dots,) = re.findall(r'class="dots" d="([^"]*)"', svg)
    found = [float(x) for x in re.findall(r"M(\d+) ", dots)]
    assert len(found) == sum(map(len, sessions))
    assert all(0 <= x <= WIDTH for x in found)
    assert f"{len(found)} samples of wall time" in svg


def test_nothing_is_drawn_of_nothing() -> None:
    assert str(samples_strip([], None, "wall time")) == ""


@given(FRACTIONS, FRACTIONS, FRACTIONS, st.floats(0.001, 0.5), st.floats(0.05, 1))
def test_a_change_never_leaves_its_strip(a: float, b: float, middle: float, relevant: float, reach: float) -> None:
    low, high = sorted((a, b))
    svg = str(interval_strip(low, high, middle, relevant, reach, "slower"))
    assert all(0 <= x <= WIDTH for x in places(svg))
    assert svg.count("l12 6") == (low < -reach)
    assert svg.count("l-12 6") == (high > reach)


def test_an_unknown_change_has_words_and_no_mark() -> None:
    svg = str(interval_strip(math.nan, math.nan, math.nan, math.nan, 0.1, "wrong"))
    assert 'class="mark"' not in svg
    assert "no change of latency is known" in svg


def points(*ms: float | None) -> list[Point]:
    return [Point(str(n), n, Outcome.OK if one else Outcome.WRONG_RESULT, "", one) for n, one in enumerate(ms)]


def test_a_sparkline_has_its_noise_as_a_band_and_a_mark_where_it_was_wrong() -> None:
    svg = str(sparkline(points(10, 10.1, 9.9, 10.05, 9.95, None, 12), "text"))
    assert svg.count('class="band"') == 1
    assert svg.count('class="bad"') == 1
    assert 'aria-label="text"' in svg


def test_what_is_right_without_a_latency_has_a_mark_of_its_own() -> None:
    right = [Point(str(n), n, Outcome.OK, "", None) for n in range(3)]
    svg = str(sparkline(right, ""))
    assert re.findall(r'class="(\w+)" d="([^"]*)"', svg) == [("untimed", "M0 15h.1M500 15h.1M1000 15h.1")]


def test_two_points_have_no_noise_and_no_band() -> None:
    assert noise_ms([10, 11]) is None
    assert 'class="band"' not in str(sparkline(points(10, 11), ""))


def test_a_step_is_not_taken_for_noise() -> None:
    noise = noise_ms([10, 10.1, 10, 10.1, 10, 20, 20.1, 20, 20.1, 20])
    assert noise is not None
    assert noise < 0.2


def test_what_moves_less_than_a_tenth_looks_flat() -> None:
    low, high, middle = spark_bounds([10, 10.01])
    assert (low, high) == pytest.approx((middle * 0.95, middle * 1.05))
