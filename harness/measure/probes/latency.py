"""The timing protocol: warm up until the times are steady, then sample both clocks within a budget.

A GPU that has rested is slow at first, and its clock settles over tenths of a second: two neighbours that agree prove
nothing at 3 ms. So nothing is timed before half a second of inferences has been steady, and samples are spread over two
seconds at least, because neighbours say the same thing twice. At least ten are taken whatever the budget, because asv's
test is blind at six against six.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence

from device_runner.device import Program
from harness.base.plan import Budget
from harness.compile.paths import family_of
from harness.measure.facts import Timing

STEADY_S = 0.5
"""Seconds for which the warm-up must be steady (TensorFlow Lite's benchmark warms up as long)."""
SAMPLED_S = 2.0
"""Seconds that the samples must cover."""
FEWEST_SAMPLES = 10
FEWEST_DEVICE_SAMPLES = 3
QUICK_SAMPLES = 3
AGREE_WITHIN = 0.05
WARM_UP_SHARE = 0.2
DEVICE_SHARE = 0.2
"""Share of the budget. It bounds the two times above as well: 0.1 s of budget gives ten samples in a row."""
WARM_UP_KEPT = 30
"""Number of warm-up inferences that a record keeps."""
MOST_INFERENCES, SHORTEST_MS = 20_000, 1e-3
"""Most inferences in a row, and shortest time of one, for a program that takes almost no time."""
CALL_SHARE = 0.5
"""Share of the deadline of one call, which exists to detect a program that hangs."""
_Timer = Callable[..., list[float]]

KERNELS, CLML_EVENTS = "kernels", "clml-events"
"""What `device_ms` adds up. OpenCL ML plays a recording of many operators as one event, and TVM's runtime waits at
every subgraph while it profiles (apache/tvm clml_runtime.cc): another quantity than the sum of kernel times."""


def device_clock(path: str) -> str:
    """Return the kind of times that `device_ms` of a path adds up. Only equal kinds are ever compared."""
    return CLML_EVENTS if family_of(path) == "clml" else KERNELS


def measure(
    program: Program,
    budget: Budget,
    look: Callable[[float], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    first_ms: float = 0.0,
) -> Timing:
    """Time a program that is known to be right. Raises what `program` and `look` raise.

    After the warm-up, `look` gets the ms of an inference and judges the answer again. If each inference lasts as long
    as the first, every call ends in time; `first_ms` is 0 if that is not known.
    """
    if budget.quick:
        # Straight after the first run, and by one clock: the other would take as long again.
        quick_ms = _lasting(program.wall_ms, budget, 0.0, QUICK_SAMPLES, 0.0, first_ms)
        return Timing(wall_ms=quick_ms, device_ms=[], warm_up_ms=[], warmed_up=False, inferences=QUICK_SAMPLES)
    began = clock()
    warm_up_ms = warm_up(program, budget, clock, first_ms)
    each_ms = statistics.median(_last(warm_up_ms, _steady_s(budget)))
    look(each_ms)
    left_s = max(0.0, budget.seconds - (clock() - began))
    wall_s = left_s * (1 - DEVICE_SHARE)
    count = _affordable(wall_s, each_ms, FEWEST_SAMPLES, max(budget.samples, FEWEST_SAMPLES))
    times = _lasting(program.wall_ms, budget, min(SAMPLED_S, wall_s), count, each_ms)
    device = _affordable(left_s * DEVICE_SHARE, each_ms, FEWEST_DEVICE_SAMPLES, FEWEST_SAMPLES)
    return Timing(
        wall_ms=_evenly(times, count),
        device_ms=_lasting(program.device_ms, budget, 0.0, device, each_ms),
        warm_up_ms=_evenly(warm_up_ms, WARM_UP_KEPT),
        warmed_up=_steady(warm_up_ms, _steady_s(budget)),
        inferences=len(times),
    )


def warm_up(program: Program, budget: Budget, clock: Callable[[], float], first_ms: float = 0.0) -> list[float]:
    """Run until the times are steady for as long as they have to be, or the warm-up's share of the budget is spent.

    Returns all of them, in ms.
    """
    began, steady_s = clock(), _steady_s(budget)
    times = _lasting(program.wall_ms, budget, steady_s, 2, 0.0, first_ms)
    while not _steady(times, steady_s) and clock() - began < WARM_UP_SHARE * budget.seconds:
        times += _lasting(program.wall_ms, budget, steady_s / 4, 2, times[-1])
    return times


def _steady_s(budget: Budget) -> float:
    """Return how long the times have to be steady: less on a budget that such a time would use up."""
    return min(STEADY_S, WARM_UP_SHARE * budget.seconds)


def _steady(times: Sequence[float], seconds: float) -> bool:
    """Return whether the two halves of the last seconds, or the last two inferences, agree within 5 %."""
    last = _last(times, seconds)
    middle = len(last) // 2
    before, after = statistics.median(last[:middle]), statistics.median(last[middle:])
    return abs(before - after) <= AGREE_WITHIN * min(before, after)


def _last(times: Sequence[float], seconds: float) -> Sequence[float]:
    """Return the newest of the times, in ms, that last for so many seconds; at least two."""
    count, lasted_ms = 0, 0.0
    while count < len(times) and (count < 2 or lasted_ms < 1e3 * seconds):
        count += 1
        lasted_ms += times[-count]
    return times[-count:]


def _lasting(
    timed: _Timer, budget: Budget, seconds: float, fewest: int, each_ms: float, first_ms: float = 0.0
) -> list[float]:
    """Time inferences for these seconds, at least `fewest`; return their ms. An `each_ms` of 0 means unknown."""
    times: list[float] = []
    while len(times) < fewest or (1e3 * seconds - sum(times) > 0.5 * each_ms and len(times) < MOST_INFERENCES):
        left = math.ceil((1e3 * seconds - sum(times)) / each_ms) if each_ms else 0
        longest_ms = each_ms or first_ms
        most = max(1, int(CALL_SHARE * 1e3 * budget.timeout_s / longest_ms)) if longest_ms else fewest
        times += timed(min(max(left, fewest - len(times)), most), timeout_s=budget.timeout_s)
        each_ms = max(statistics.median(times), SHORTEST_MS)
    return times


def _evenly(times: Sequence[float], most: int) -> list[float]:
    """Choose at most `most` times, evenly spaced."""
    count = min(most, len(times))
    return [times[(2 * index + 1) * len(times) // (2 * count)] for index in range(count)]


def _affordable(seconds: float, each_ms: float, fewest: int, most: int) -> int:
    return max(fewest, min(most, int(seconds * 1e3 / max(each_ms, 1e-6))))
