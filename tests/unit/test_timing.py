"""The timing protocol, against a program whose times are known."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from harness.cases.plan import Budget
from harness.run.timing import FEWEST_DEVICE_SAMPLES, FEWEST_SAMPLES, measure


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
    return measure(FakeProgram(clock, steady_ms, iter(times)), budget, clock), clock  # type: ignore[arg-type]


def test_nothing_is_kept_before_two_consecutive_times_agree() -> None:
    timing, _ = run(10.0, [90.0, 50.0, 30.0, 20.0, 12.0, 10.0], Budget(seconds=20))
    assert timing.warm_up_ms[:6] == [90.0, 50.0, 30.0, 20.0, 12.0, 10.0]
    assert timing.warmed_up
    assert set(timing.wall_ms) == {10.0}


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
