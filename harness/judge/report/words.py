"""Numbers and states in the words that all reports use."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from harness.base.case import Case
from harness.base.outcome import CaseState
from harness.base.request import WITH_WORKAROUNDS
from harness.base.tables import counted
from harness.compile.compiler.releases import RELEASES, release
from harness.compile.paths import PATHS
from harness.judge.stats.shares import share_interval, signed_share
from harness.judge.verdict import Verdict

if TYPE_CHECKING:
    from harness.judge.history.events import Event
    from harness.judge.history.results import Point, Series

SYMBOLS = {
    CaseState.RIGHT: "✓",
    CaseState.VACUOUS: "◇",
    CaseState.WRONG: "✗",
    CaseState.BROKEN: "■",
    CaseState.UNSUPPORTED: "○",
    CaseState.UNKNOWN: "?",
}
"""Shapes, so that no report depends on colour."""

HASH_LENGTH = 8
LONGEST_CAUSE = 80
"""Characters of a message in a cell."""
NS_DIGITS = 6
"""Digits of a time in ms: devices report nanoseconds."""
_RELEASED_MS = {
    tvm: datetime.fromisoformat(release.released_at).timestamp() * 1000 for tvm, release in RELEASES.items()
}


def count_states(states: Iterable[CaseState]) -> dict[CaseState, int]:
    """Return how many there are of each state that occurs, in the order of all states."""
    counts = Counter(states)
    return {state: counts[state] for state in CaseState if counts[state]}


def state_text(point: Point) -> str:
    """`✓ right`, and what is remarked on it: `✓ right, as opencl`."""
    state = point.state
    return ", ".join(filter(None, (f"{SYMBOLS[state]} {state.value}", point.remark)))


def quirks_text(series: Series) -> str:
    """Return `with workarounds`, for which stored results have an older word, or `as-shipped`."""
    return "with workarounds" if series.quirks == WITH_WORKAROUNDS else series.quirks


def ordered_paths(names: Iterable[str]) -> list[str]:
    """Return the columns of a table: the paths in the order of the program, others after them."""
    order = list(PATHS)
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def kind_text(case: Case) -> str:
    """Return a case without its model: `texture float32 untuned`."""
    return f"{case.path} {case.precision.value} {case.tuning.value}"


def spark_text(points: Sequence[Point]) -> str:
    """Describe a sparkline: how many commits, and between which latencies."""
    times = sorted(point.wall_ms for point in points if point.wall_ms is not None)
    bounds = list(dict.fromkeys(latency(ms) for ms in (times[0], times[-1]))) if times else ["no latency"]
    return f"{' to '.join(bounds)}, {len(points)} commit{'s' if len(points) > 1 else ''}"


def fact_class(value: str) -> str:
    """Return the style of a fact by its length: one column of the grid is empty text, `wide` two, `long` all."""
    return "long" if len(value) > 60 else "wide" if len(value) > 28 else ""


def latency(ms: float | None) -> str:
    """Return a latency in ms with four significant digits."""
    if ms is None:
        return "-"
    return f"{ms:.0f} ms" if ms >= 1000 else f"{ms:.4g} ms"


def colour_of(verdict: Verdict) -> str:
    """Return the style of a verdict: one on counts has that of the like verdict on a latency."""
    return {Verdict.HEAVIER: Verdict.SLOWER, Verdict.LIGHTER: Verdict.FASTER}.get(verdict, verdict).value


def difference(ms: float) -> str:
    """Return a difference of two times with its sign; what is below a nanosecond is rounding of theirs."""
    return f"{ms:+.4g} ms" if round(ms, NS_DIGITS) else "0 ms"


SINCE_RELEASE = (
    "since the last release: the newest commit against the last one of another TVM, a session of each; "
    "a step is between levels of many commits, so the two numbers differ"
)
"""Explanation of the change beside a latency, which may differ from a step of the same series."""


def percent(share: float | None) -> str:
    """Return a relative change with its sign."""
    return "-" if share is None else signed_share(share)


def interval(bounds: tuple[float, float] | None) -> str:
    """Return the interval of a change, after it; empty if it is not known."""
    return "" if bounds is None else f" ({share_interval(bounds[0], bounds[1])})"


def error(point: Point) -> str:
    """Return the largest error against the largest that would be right."""
    return error_text(point.max_abs_err, point.tolerance)


def error_text(error: float | None, tolerance: float | None) -> str:
    """Format an error and its tolerance."""
    return "-" if error is None or tolerance is None else f"{error:.2g} (right up to {tolerance:.2g})"


def cause(outcome: str, message: str) -> str:
    """Return an outcome, and as much of its message as fits into a cell."""
    first = message.splitlines()[0] if message else ""
    short = first if len(first) <= LONGEST_CAUSE else f"{first[:LONGEST_CAUSE].rpartition(' ')[0]} …"
    return f"{outcome}: {short}" if short else outcome


def between(first: str, last: str) -> str:
    """Format two moments (ISO 8601) as a short interval in UTC."""
    first, last = (moment.replace("T", " ")[:16] for moment in (first, last))
    return f"{first} UTC" if first == last else f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def is_release(point: Point) -> bool:
    """Return whether the commit is that of a release of TVM, with the release's date."""
    return _RELEASED_MS.get(point.tvm) == point.date_ms


def commit_text(point: Point) -> str:
    """Return the name of a commit for people: the release, or its hash and the TVM that was measured there."""
    short = point.commit[:HASH_LENGTH]
    return f"TVM {point.tvm}" + ("" if is_release(point) else f" ({short})") if point.tvm else short


def date_text(point: Point) -> str:
    """Return the day of the commit, in UTC."""
    return day_text(point.date_ms)


@functools.lru_cache(1 << 14)
def day_text(date_ms: int) -> str:
    """Format the day of a time in ms since the epoch."""
    return datetime.fromtimestamp(date_ms / 1000, timezone.utc).strftime("%Y-%m-%d")


def numbers(event: Event) -> tuple[str, str]:
    """Return the two numbers of an event: errors if an answer turned wrong, else latencies, else the outcome."""
    if event.verdict is Verdict.WRONG:
        return error(event.before), error(event.after)
    if event.step:
        return latency(event.step.before_ms), latency(event.step.after_ms)
    return _number(event.before), _number(event.after)


def step_text(event: Event) -> str:
    """Describe how far a latency moved and how certain that is; empty without a step."""
    if not event.step:
        return ""
    step = event.step
    trend = ", beside a trend" if step.trend else ""
    amount = f"{signed_share(step.relative)} ({share_interval(step.low, step.high)}), p {step.p:.1g}{trend}"
    before, after = event.before.settings, event.after.settings
    others = f", but {before} before and {after} after" if before and after and before != after else ""
    return f"{amount}, {_decided(event)}{others}"


def _decided(event: Event) -> str:
    """Return the status of a step: `suspected`, or the result of sessions in turns."""
    decision = event.decided
    if not decision:
        return "suspected"
    change = "" if decision.relative is None else f": {signed_share(decision.relative)}"
    if change and decision.low is not None and decision.high is not None:
        change += f" ({share_interval(decision.low, decision.high)})"
    result = f"not borne out in turns, {decision.verdict.value}" if event.refuted else "confirmed in turns"
    return f"{result}{change}, {counted(decision.sessions, 'session')} by {decision.by}, {decision.day}"


def confirmation(event: Event) -> str:
    """Return the command that confirms a step by fresh sessions in turns; empty for what is no step, or decided."""
    if not event.step or event.decided:
        return ""
    before, after = event.before, event.after
    releases = before.tvm and after.tvm and release(before.tvm) != release(after.tvm)
    ends = (before.tvm, after.tvm) if releases else (before.commit[:HASH_LENGTH], after.commit[:HASH_LENGTH])
    shipped = "" if event.series.quirks == WITH_WORKAROUNDS else " --as-shipped"
    return f"adreno-bench compare {ends[0]} {ends[1]} --case {event.series.case.id}{shipped}"


def _number(point: Point) -> str:
    if point.wall_ms is not None:
        return latency(point.wall_ms)
    if point.state is CaseState.WRONG:
        return f"wrong: {error(point)}"
    return point.outcome.value if point.outcome else "not installed"
