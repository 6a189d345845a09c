"""Percentiles, and the interval of a median."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr

from harness.judge.stats.sample_summary import median_ranks, summarise_samples


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=300))
def test_percentiles_are_samples_in_order(samples: list[float]) -> None:
    found = summarise_samples(samples)
    assert found
    ordered = [found.min_ms, found.q1_ms, found.q3_ms, found.p90_ms, found.p99_ms, found.max_ms]
    assert ordered == sorted(ordered)
    assert set(ordered) <= set(samples)
    assert found.q1_ms <= found.median_ms <= found.q3_ms or found.count == 1 or found.count == 2
    at_most = sum(one <= found.p90_ms for one in samples)
    assert at_most >= 0.9 * len(samples)


def test_known_percentiles() -> None:
    found = summarise_samples([float(n) for n in range(1, 101)])
    assert found
    assert (found.q1_ms, found.median_ms, found.q3_ms, found.p90_ms, found.p99_ms) == (25, 50.5, 75, 90, 99)
    assert summarise_samples([]) is None


@pytest.mark.parametrize(("count", "ranks"), [(5, None), (6, (0, 5)), (10, (1, 8)), (20, (5, 14)), (100, (39, 60))])
def test_ranks_are_those_of_the_tables_of_the_binomial(count: int, ranks: tuple[int, int] | None) -> None:
    assert median_ranks(count) == ranks


@pytest.mark.parametrize("count", [1_000, 20_001, 100_000])
def test_ranks_of_many_samples_are_the_last_below_the_tail(count: int) -> None:
    ranks = median_ranks(count)
    assert ranks
    low, high = ranks
    assert bdtr(low, count, 0.5) <= 0.025 < bdtr(low + 1, count, 0.5)
    assert low + high == count - 1


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    rng = random.Random(1)
    held = []
    for _ in range(2000):
        found = summarise_samples([rng.lognormvariate(0, 0.3) for _ in range(30)])
        assert found is not None
        assert found.low_ms is not None
        assert found.high_ms is not None
        held.append(found.low_ms <= 1 <= found.high_ms)
    assert 0.94 <= statistics.fmean(held) <= 0.98
