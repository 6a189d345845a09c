"""Waiting until a phone is cool, and judging whether it kept its pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Pulse, ThermalLimits
from device_runner.failures import FlatBattery
from device_runner.stability.judge import busy_clock_mhz, clock_share, judge, pulses
from device_runner.stability.keeper import IDLE_WAIT_S, too_hot, wait_until_cool
from device_runner.stability.reading import Reading

COOL = Reading(
    gpu_c=38.0,
    battery_c=30.0,
    battery_percent=80,
    charging=True,
    thermal_status=0,
    gpu_cooling=0,
    thermal_pwrlevel=0,
    max_clock_mhz=800,
    top_clock_mhz=800,
    clock_stats=(1_000, 0, 500),
    reset_count=2,
)


def later(**changes: Any) -> Reading:
    return replace(COOL, **{"clock_stats": (9_000, 0, 500), **changes})


def test_a_phone_that_held_its_pace() -> None:
    verdict = judge(COOL, later(gpu_c=52.0))
    assert not verdict.throttled
    assert verdict.why == ""
    assert verdict.facts["clock_share"] == 1.0
    assert verdict.facts["after"]["gpu_c"] == 52.0
    assert "notes" not in verdict.facts


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"thermal_pwrlevel": 2, "max_clock_mhz": 400}, "heat held the GPU at power level 2 (400 of 800 MHz)"),
        ({"thermal_pwrlevel": None, "max_clock_mhz": 600}, "heat held the GPU at 600 of 800 MHz"),
        ({"gpu_cooling": 4}, "Android's cooling of the GPU was turned up to 4"),
        ({"thermal_status": 3}, "Android's thermal status was 3 (severe)"),
        ({"reset_count": 3}, "the GPU was reset meanwhile (reset_count 2 to 3)"),
    ],
)
def test_each_sign_of_heat_is_enough_and_named(change: dict[str, Any], why: str) -> None:
    verdict = judge(COOL, later(**change))
    assert verdict.throttled
    assert verdict.why == why


def test_a_phone_that_was_throttled_before_and_recovered_was_not_steady() -> None:
    assert judge(replace(COOL, thermal_pwrlevel=1), later()).throttled


def test_a_status_that_the_gate_lets_through_is_this_phones_normal() -> None:
    warm = replace(COOL, thermal_status=1)
    assert judge(warm, later(thermal_status=1)).throttled
    assert not judge(warm, later(thermal_status=1), tolerated_status=1).throttled


def test_a_clock_that_varies_is_a_note_and_if_it_was_held_a_proof() -> None:
    varied = later(clock_stats=(1_600, 0, 900))
    free = judge(COOL, varied)
    assert not free.throttled
    assert free.facts["notes"] == ["the GPU's clock varied: 60% of its time at one level"]
    assert judge(COOL, varied, fixed_clock=True).throttled
    assert not judge(COOL, later(), fixed_clock=True).throttled


def test_the_shares_of_the_clocks_are_kept() -> None:
    shown = replace(COOL, clocks_mhz=(800, 600, 400))
    verdict = judge(shown, replace(shown, clock_stats=(7_000, 0, 2_500)))
    assert verdict.facts["clock_histogram"] == {"800": 0.75, "400": 0.25}
    assert "clock_histogram" not in judge(COOL, later()).facts, "whose clocks these are is not known"


def test_a_low_battery_is_noted() -> None:
    assert "battery was low (9 %)" in judge(replace(COOL, battery_percent=9), later()).facts["notes"][0]


def test_a_phone_that_tells_nothing_is_believed_and_the_record_says_what_is_missing() -> None:
    verdict = judge(Reading(), Reading())
    assert not verdict.throttled
    assert verdict.facts["before"] == {}
    assert "thermal_pwrlevel" in verdict.facts["unavailable"]


@pytest.mark.parametrize("after", [None, (5,), (1_000, 0, 500), (0, 0, 0), (2_000, 0, 499)])
def test_a_histogram_that_cannot_be_subtracted_tells_nothing(after: tuple[int, ...] | None) -> None:
    assert clock_share(COOL, replace(COOL, clock_stats=after)) is None


NUMBER = st.none() | st.integers(0, 10**15)
READINGS = st.builds(
    Reading,
    gpu_c=st.none() | st.floats(-30, 150),
    battery_percent=st.none() | st.integers(0, 100),
    thermal_status=st.none() | st.integers(0, 9),
    gpu_cooling=NUMBER,
    thermal_pwrlevel=NUMBER,
    max_clock_mhz=NUMBER,
    top_clock_mhz=NUMBER,
    clock_stats=st.none() | st.lists(st.integers(0, 10**18), max_size=4).map(tuple),
    reset_count=NUMBER,
)


@given(READINGS, READINGS, st.booleans())
def test_every_verdict_says_why(before: Reading, after: Reading, held: bool) -> None:
    verdict = judge(before, after, fixed_clock=held)
    assert verdict.throttled == bool(verdict.why)
    assert 0 <= verdict.facts.get("clock_share", 1) <= 1


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(temperatures: list[float], limits: ThermalLimits) -> tuple[Reading, dict[str, object], float]:
    clock, left = Clock(), iter([*temperatures, *[temperatures[-1]] * 1000])
    seen, facts = wait_until_cool(lambda: replace(COOL, gpu_c=next(left)), limits, clock=clock, sleep=clock.sleep)
    return seen, facts, clock.now


def test_a_cool_phone_is_not_kept_waiting() -> None:
    seen, facts, waited = wait([40.0], ThermalLimits(gpu_c=45))
    assert (seen.gpu_c, waited) == (40.0, 0)
    assert facts == {"waited_s": 0}


def test_a_hot_phone_is_waited_for() -> None:
    seen, facts, waited = wait([60.0, 50.0, 44.9, 60.0], ThermalLimits(gpu_c=45))
    assert seen.gpu_c == 44.9
    assert 0 < waited < ThermalLimits().wait_s
    assert "hot_start" not in facts


def test_a_phone_that_stays_hot_is_measured_after_the_deadline_and_that_is_recorded() -> None:
    seen, facts, waited = wait([60.0], ThermalLimits(gpu_c=45, wait_s=30))
    assert (seen.gpu_c, waited) == (60.0, 30)
    assert facts == {"waited_s": 30, "hot_start": "GPU °C 60 > 45"}


@pytest.mark.parametrize("wait_s", [0.2, 120])
def test_a_gpu_that_works_for_others_is_waited_for_a_little_and_then_that_is_recorded(wait_s: float) -> None:
    clock, limits = Clock(), ThermalLimits(wait_s=wait_s)
    busy = replace(COOL, gpu_busy_percent=63)
    _, facts = wait_until_cool(lambda: busy, limits, clock=clock, sleep=clock.sleep)
    assert facts["busy_start"] == "GPU 63 % busy > 10"
    assert clock.now == min(wait_s, IDLE_WAIT_S)
    looks = iter([busy, busy, replace(COOL, gpu_busy_percent=10)])
    _, facts = wait_until_cool(lambda: next(looks), ThermalLimits(), clock=clock, sleep=clock.sleep)
    assert facts == {"waited_s": 1.0}


def test_nothing_is_timed_on_a_battery_below_its_floor_and_nobody_waits_for_it() -> None:
    flat = replace(COOL, battery_percent=19, gpu_c=60.0)
    with pytest.raises(FlatBattery, match="the battery is at 19 %, below its floor of 20 %") as refused:
        wait_until_cool(lambda: flat, ThermalLimits(), sleep=lambda _: pytest.fail("it waits"))
    assert refused.value.outcome == "throttled"
    assert wait_until_cool(lambda: flat, ThermalLimits(battery_percent=19, wait_s=0))[1]["hot_start"]


def test_what_cannot_be_read_is_not_waited_for() -> None:
    assert too_hot(Reading(), ThermalLimits()) == ""
    hot = Reading(battery_c=41.5, thermal_status=2)
    assert too_hot(hot, ThermalLimits()) == "battery °C 41.5 > 40, thermal status 2 > 0"


CLOCKS = (800, 600, 400)


def seen(readings: Iterable[Reading], tolerated: int = 0) -> list[Pulse]:
    kept = list(readings)
    looks = iter(kept)
    pulse = pulses(lambda: next(looks), tolerated)
    return [pulse() for _ in kept]


def at(busy: tuple[int, ...], **known: object) -> Reading:
    return Reading(clocks_mhz=CLOCKS, clock_stats=busy, clock_mhz=200, **known)  # type: ignore[arg-type]


def test_the_clock_is_that_of_the_time_in_which_the_gpu_was_busy_since_the_look_before() -> None:
    looks = seen([at((5, 5, 5)), at((105, 5, 5)), at((105, 55, 55)), at((105, 55, 255))])
    assert [look.clock_mhz for look in looks] == [None, 800, 500, 400]


def test_where_nothing_counts_it_is_the_clock_of_this_moment() -> None:
    idle = Reading(clock_mhz=200)
    assert [look.clock_mhz for look in seen([idle, idle])] == [200, 200]
    assert [look.clock_mhz for look in seen([Reading(), Reading()])] == [None, None]


def test_each_look_says_whether_heat_slows_the_phone_down_now() -> None:
    cool, warm = at((1, 0, 0), thermal_pwrlevel=0), at((2, 0, 0), thermal_pwrlevel=1)
    looks = seen([cool, warm, cool])
    assert [bool(look.slowed) for look in looks] == [False, True, False]
    assert all(look.shows_heat for look in looks)
    assert not seen([Reading(gpu_c=40.0)])[0].shows_heat


def test_a_thermal_status_that_is_normal_here_is_no_slowness() -> None:
    light = Reading(thermal_status=1)
    assert seen([light])[0].slowed
    assert not seen([light], tolerated=1)[0].slowed


STATS = st.none() | st.lists(st.integers(0, 10**15), min_size=1, max_size=4).map(tuple)


@given(STATS, STATS, st.none() | st.just(CLOCKS))
def test_whatever_a_driver_counts_the_clock_is_one_that_there_is_or_unknown(
    before: tuple[int, ...] | None, after: tuple[int, ...] | None, clocks: tuple[int, ...] | None
) -> None:
    mean = busy_clock_mhz(Reading(clock_stats=before), Reading(clock_stats=after, clocks_mhz=clocks))
    assert mean is None or min(CLOCKS) - 1e-6 <= mean <= max(CLOCKS) + 1e-6
