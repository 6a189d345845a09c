"""The timing protocol, against a program whose times are known."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Program
from harness.base.plan import Budget
from harness.measure.probes.latency import FEWEST_DEVICE_SAMPLES, FEWEST_SAMPLES, measure


@dataclass
class FakeClock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class FakeProgram:
    """Takes `times` in turn, then `steady_ms` for ever; moves the clock as it runs."""

    clock: FakeClock
    steady_ms: float
    times: Iterator[float] = field(default_factory=lambda: iter(()))

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        taken = [next(self.times, self.steady_ms) for _ in range(repeat)]
        self.clock.now_s += sum(taken) / 1e3
        return taken

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.clock.now_s += repeat * self.steady_ms / 1e3
        return [self.steady_ms / 2] * repeat


def run(steady_ms: float, times: list[float], budget: Budget):  # type: ignore[no-untyped-def]
    clock = FakeClock()
    return measure(cast("Program", FakeProgram(clock, steady_ms, iter(times))), budget, clock=clock), clock


def test_nothing_is_kept_before_the_times_are_steady() -> None:
    timing, _ = run(10.0, [90.0, 50.0, 30.0, 20.0, 12.0, 10.0], Budget(seconds=20))
    assert timing.warm_up_ms[0] > 12.0
    assert timing.warmed_up
    assert set(timing.wall_ms) == {10.0}


def test_two_neighbours_that_agree_at_3_ms_prove_nothing() -> None:
    """A clock that rises in steps of tens of milliseconds, each of which is flat."""
    rising = [ms for ms in (3.9, 3.9, 3.3, 3.3, 3.0) for _ in range(20)]
    timing, clock = run(3.0, rising, Budget(seconds=20))
    assert timing.warmed_up
    assert set(timing.wall_ms) == {3.0}
    assert clock.now_s > 2.5


@pytest.mark.parametrize("steady_ms", [0.2, 3.0, 40.0])
def test_the_samples_of_a_fast_program_cover_two_seconds(steady_ms: float) -> None:
    timing, _ = run(steady_ms, [], Budget(seconds=20))
    assert len(timing.wall_ms) == 30
    assert timing.inferences * steady_ms >= 0.99 * 2_000


def test_what_is_kept_of_many_is_spread_over_all_of_them() -> None:
    timing, _ = run(3.0, [3.0 + 0.0001 * index for index in range(1000)], Budget(seconds=20))
    apart = [round((later - earlier) / 0.0001) for earlier, later in itertools.pairwise(timing.wall_ms)]
    assert (len(timing.wall_ms), max(apart) - min(apart)) == (30, 1)
    assert sum(apart) > 0.9 * timing.inferences


def test_a_short_budget_takes_ten_samples_in_a_row_and_no_longer_than_it_says() -> None:
    timing, clock = run(10.0, [], Budget(seconds=0.1, samples=10))
    assert (len(timing.warm_up_ms), len(timing.wall_ms), timing.inferences) == (2, 10, 10)
    assert clock.now_s < 0.16


def test_one_call_stays_well_below_its_deadline() -> None:
    clock, calls = FakeClock(), list[int]()

    class Counting(FakeProgram):
        def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
            calls.append(repeat)
            return super().wall_ms(repeat, timeout_s=timeout_s)

    measure(cast("Program", Counting(clock, 2.0)), Budget(seconds=20, timeout_s=1.0), clock=clock)
    assert max(calls) * 2.0 <= 500


@pytest.mark.parametrize(("quick", "samples"), [(True, 3), (False, 10)])
def test_a_program_of_which_three_inferences_take_the_deadline_is_timed_one_by_one(quick: bool, samples: int) -> None:
    """TVM runs one more before it times any: four of 89 s are longer than 300 s, and were called a hang."""
    clock = FakeClock()

    class Slow(FakeProgram):
        def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
            assert (repeat + 1) * self.steady_ms < 1e3 * timeout_s
            return super().wall_ms(repeat, timeout_s=timeout_s)

        def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
            assert (repeat + 1) * self.steady_ms < 1e3 * timeout_s
            return super().device_ms(repeat, timeout_s=timeout_s)

    budget = Budget(seconds=0.2, samples=10, timeout_s=300.0, quick=quick)
    timing = measure(cast("Program", Slow(clock, 88_000.0)), budget, clock=clock, first_ms=88_809.0)
    assert len(timing.wall_ms) == samples


@given(
    st.lists(st.floats(0.1, 1e4), max_size=60),
    st.sampled_from([0.3, 7.0, 900.0, 1e4]),
    st.floats(0.01, 30),
    st.integers(10, 200),
)
def test_whatever_a_program_takes_the_protocol_ends_and_keeps_what_it_promises(
    times: list[float], steady_ms: float, seconds: float, samples: int
) -> None:
    timing, _ = run(steady_ms, times, Budget(seconds=seconds, samples=samples))
    assert FEWEST_SAMPLES <= len(timing.wall_ms) <= max(samples, FEWEST_SAMPLES)
    assert len(timing.wall_ms) <= timing.inferences
    assert len(timing.warm_up_ms) >= 2


def test_a_program_that_never_settles_is_sampled_all_the_same_and_says_so() -> None:
    timing, _ = run(10.0, [10.0, 20.0] * 1000, Budget(seconds=1))
    assert not timing.warmed_up
    assert len(timing.wall_ms) >= FEWEST_SAMPLES


def test_a_slow_program_gets_the_fewest_samples() -> None:
    timing, _ = run(5_000.0, [], Budget(seconds=20))
    assert len(timing.wall_ms) == FEWEST_SAMPLES
    assert len(timing.device_ms) == FEWEST_DEVICE_SAMPLES


@pytest.mark.parametrize("steady_ms", [0.0, 0.1, 10.0, 100.0, 300.0])
def test_the_budget_holds_where_it_buys_enough_samples(steady_ms: float) -> None:
    budget = Budget(seconds=20, samples=50)
    timing, clock = run(steady_ms, [], budget)
    assert FEWEST_SAMPLES <= len(timing.wall_ms) <= budget.samples
    assert clock.now_s <= budget.seconds


def test_a_quick_look_takes_the_fewest_and_does_not_warm_up() -> None:
    timing, clock = run(1000.0, [], Budget(seconds=60, samples=100, quick=True))
    assert (len(timing.wall_ms), len(timing.device_ms), timing.warm_up_ms, timing.warmed_up) == (3, 0, [], False)
    assert clock.now_s == 3.0
