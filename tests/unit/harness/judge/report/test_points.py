"""Which points of a long series are drawn: whatever is left out, nothing is hidden by it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.base.outcome import Outcome
from harness.judge.history.results import Point
from harness.judge.report.points import BUCKETS, NEWEST, thin

OUTCOMES = (Outcome.OK, Outcome.WRONG_RESULT, Outcome.COMPILE_ERROR, Outcome.UNSUPPORTED, Outcome.DEVICE_LOST, None)
STRETCHES = st.lists(st.tuples(st.sampled_from(OUTCOMES), st.integers(1, 900), st.floats(1, 1e4)), max_size=12)


def series(stretches: list[tuple[Outcome | None, int, float]]) -> list[Point]:
    points: list[Point] = []
    for outcome, length, level_ms in stretches:
        for _ in range(length):
            place = len(points)
            wall_ms = level_ms * (1 + (place * 7919 % 101) / 1000) if outcome is Outcome.OK else None
            points.append(Point(str(place), place, outcome, "", wall_ms))
    return points


@given(STRETCHES)
def test_no_change_of_state_is_hidden(stretches: list[tuple[Outcome | None, int, float]]) -> None:
    points = series(stretches)
    places = thin(points)
    assert places == sorted(set(places))
    states = [point.state for point in points]
    changes = {place for place, (a, b) in enumerate(pairwise(states)) if a != b}
    assert changes | {place + 1 for place in changes} <= set(places)


@given(STRETCHES)
def test_the_ends_the_extremes_and_the_newest_points_are_thin(
    stretches: list[tuple[Outcome | None, int, float]],
) -> None:
    points = series(stretches)
    places = set(thin(points))
    assert set(range(max(0, len(points) - NEWEST), len(points))) <= places
    assert not points or 0 in places
    known = [point.wall_ms for point in points if point.wall_ms is not None]
    kept = [wall_ms for place in places if (wall_ms := points[place].wall_ms) is not None]
    assert not known or (min(kept), max(kept)) == (min(known), max(known))


@given(STRETCHES)
def test_what_is_left_out_lies_between_neighbours_that_are_thin(
    stretches: list[tuple[Outcome | None, int, float]],
) -> None:
    points = series(stretches)
    places = thin(points)
    longest = 2 * (len(points) // BUCKETS + 1)
    assert all(after - before <= longest for before, after in pairwise(places))
    assert len(places) <= 2 * (BUCKETS + len(stretches)) + NEWEST + 1 or len(places) == len(points)


def test_one_wrong_answer_among_thousands_is_thin() -> None:
    points = series([(Outcome.OK, 1234, 5.0), (Outcome.WRONG_RESULT, 1, 0.0), (Outcome.OK, 3000, 5.0)])
    places = thin(points)
    assert {1233, 1234, 1235} <= set(places)
    assert len(places) < len(points) / 10


def test_both_commits_of_an_event_are_thin() -> None:
    points = series([(Outcome.OK, 5000, 5.0)])
    left_out = next(place for place in range(5000) if place not in thin(points))
    assert left_out in thin(points, named={str(left_out)})


def test_few_points_are_all_thin() -> None:
    assert thin(series([(Outcome.OK, 240, 5.0)])) == list(range(240))
