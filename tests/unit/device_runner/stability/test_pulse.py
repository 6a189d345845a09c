"""What is seen of a phone that is kept running, look by look."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Pulse
from device_runner.stability.judge import busy_clock_mhz
from device_runner.stability.pulse import pulses
from device_runner.stability.reading import Reading

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
