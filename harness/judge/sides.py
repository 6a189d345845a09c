"""One side of a comparison: the sessions of a case on an identity, and the clocks of its GPU.

Without root a phone chooses its clocks by load, heat and charge. Different clocks look just like different builds, and
then latencies do not compare the builds.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from sys import intern
from typing import NamedTuple, TypeVar

from msgspec import Struct

from harness.base.case import require_case_id
from harness.base.outcome import Outcome, Owner
from harness.base.tables import grouped
from harness.judge.remarks import as_opencl, vacuity
from harness.judge.stats import robust
from harness.judge.stats.session import Location, ReferenceSamples, Samples, Summary, as_numbers, summarise_each
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record
from harness.measure.records.view import SessionView

Session = Record | SessionView
"""One session: a record, or the fields of it that a side needs."""
AnySession = TypeVar("AnySession", bound=Session)
QUICK_LOOK = "a quick look's samples are too few"
FEWEST_SESSIONS = 2
"""Fewest sessions on each side before a latency counts as changed: the samples of one session share its bias."""
CLOCK_SET = "2020"
"""Earlier times come from a clock that was not set, and belong to no day."""
_HANDSET = re.compile(r"^(phone-.+-[0-9a-f]{8})-[0-9a-f]{5}$")
INTERLEAVED = 0.25
"""Share of the pairs of a base and a head session in which either has to come first, for the two to be interleaved. By
the first and the last session alone, one that a clock which jumped put elsewhere would make them so."""
Histogram = Mapping[str, float]
"""Share of a session's busy time at each clock, by MHz as text (`device_runner.stability.judge`)."""
MOST_ELSEWHERE = 0.1
"""Share of the time that one side may have spent at clocks at which the other did not. A tenth of it at a clock that is
a quarter lower takes 3 % longer, which is the smallest change that counts by default."""
WHOLE = (0.95, 1.05)
"""Range of the sum of a histogram's rounded shares."""


class SeriesKey(NamedTuple):
    """Properties that must be equal for two sides to be comparable."""

    identity: str
    case: str
    as_shipped: bool = False

    @classmethod
    def of(cls, record: Session) -> SeriesKey:
        """Return the series that a record belongs to."""
        return cls(intern(record.identity_key), intern(record.case), record.as_shipped)

    def __str__(self) -> str:
        return f"{self.case}{' as shipped' if self.as_shipped else ''}"


def model_of(identity_key: str) -> str:
    """Return an identity's key without its handset: the same for all phones of one model, driver and ROM."""
    return _HANDSET.sub(r"\1", identity_key)


def of_one_model(some: Iterable[str], others: Iterable[str]) -> str:
    """Return a remark on two sides' identity keys that differ only in the handset; empty if there are none."""
    models = {model_of(key) for key in some} & {model_of(key) for key in others}
    return f"{', '.join(sorted(models))} ran on two handsets, which are two series" if models else ""


class Side(Struct, frozen=True, dict=True):
    """A case on one side: all sessions of one build on one identity."""

    key: SeriesKey
    outcome: Outcome
    """`ok`, or the worst outcome of any session."""
    message: str = ""
    sessions: tuple[Samples, ...] = ()
    """Samples of `wall_ms`, one tuple for each session that was right."""
    device_sessions: tuple[Samples, ...] = ()
    """Samples of `device_ms`, the kernels alone, of those sessions that have them."""
    started: tuple[str, ...] = ()
    """Start of each of these sessions; UTC, ISO 8601."""
    artifact: str = ""
    quirks: tuple[str, ...] = ()
    tvm: str = ""
    """The release that compiled it."""
    runtime: str = ""
    """Hash of the pushed TVM runtime; empty if none was pushed, or if it is unknown."""
    settings: Mapping[str, int] = {}
    """Settings of its sessions (`harness.measure.facts.RunSettings`)."""
    emulated: tuple[str, ...] = ()
    vacuous: tuple[str, ...] = ()
    """Why being right proves nothing, if that is so."""
    partly_vacuous: tuple[str, ...] = ()
    """The same of some outputs only."""
    as_opencl: str = ""
    """Why it measured path opencl instead of its own; empty if it did not."""
    untimed: str = ""
    """Why its samples do not count; empty if they do."""
    probes: tuple[ReferenceSamples, ...] = ()
    """The reference kernel, in each session that measured it."""
    clocks: tuple[Histogram, ...] = ()
    """Clocks of the GPU, in each session that has them."""
    doubt: str = ""
    """Why the latest build is uncertain; empty if it is certain."""

    @cached_property
    def summary(self) -> Summary:
        """Summary of the sessions, with one number for each."""
        return summarise_each([self.sessions])[0]

    def summary_by(self, location: Location) -> Summary:
        """Summarise the side by another number of each session."""
        return self.summary if location is Location.MIDDLE else summarise_each([self.sessions], location=location)[0]

    @cached_property
    def location_ms(self) -> float:
        """Hodges-Lehmann location over the usable sessions; NaN without any."""
        good = self.summary.good
        return math.exp(robust.location([session.log_ms for session in good])) if good else math.nan

    @property
    def days(self) -> int:
        """Number of days on which its sessions ran."""
        if len(self.started) <= 1:  # as good as always
            return 1
        return max(1, len({moment[:10] for moment in self.started if moment >= CLOCK_SET}))

    @property
    def vacuity(self) -> str:
        """Why being right proves nothing, or nothing of some outputs; empty if all prove something."""
        return ": ".join(vacuity(self.vacuous, self.partly_vacuous) or ())

    @property
    def finding(self) -> Verdict | None:
        """Whether it is wrong or broken, and not by the rig's fault."""
        return finding(self.outcome)


Sides = Mapping[SeriesKey, Side]


def summarise_sides(sides: Iterable[Side]) -> None:
    """Summarise the sessions of many sides, in a fraction of the time that single summaries take."""
    waiting = [side for side in sides if "summary" not in vars(side)]
    for side, summary in zip(waiting, summarise_each([side.sessions for side in waiting]), strict=True):
        vars(side)["summary"] = summary  # where the cached property keeps it


def sides_of(records: Iterable[Record]) -> dict[SeriesKey, Side]:
    """One side for each case, identity and way of shipping: all sessions of the latest build.

    Raises UsageError for a record whose case is none.
    """
    return {key: side_of(group) for key, group in by_series(records).items()}


def by_series(records: Iterable[Record]) -> dict[SeriesKey, list[Record]]:
    """Return the records of each series, in their order."""
    return grouped(records, SeriesKey.of)


def side_of(group: Sequence[Session]) -> Side:
    """Return the side of one series from its records. Raises UsageError if its case id is invalid."""
    first, latest = group[0], latest_build(group)
    require_case_id(first.case)
    right = [record for record in latest if record.outcome is Outcome.OK]
    timed = [record for record in right if record.comparable_ms]
    faults = [record for record in latest if finding(record.outcome)] if len(right) < len(latest) else []
    decides = (faults or right or latest)[-1]
    return Side(
        key=SeriesKey.of(first),
        outcome=decides.outcome,
        message=decides.message,
        sessions=tuple([as_numbers(record.wall_ms) for record in timed]),
        device_sessions=tuple([as_numbers(record.device_ms) for record in timed if record.device_ms]),
        started=tuple([record.started_at for record in timed]),
        artifact=decides.artifact,
        quirks=decides.quirks,
        tvm=decides.compilers.tvm,
        runtime=decides.identity.runtime,
        settings=decides.settings,
        emulated=decides.emulated,
        vacuous=tuple(decides.vacuous),
        partly_vacuous=tuple(decides.partly_vacuous),
        as_opencl=other_path.why if (other_path := as_opencl(decides.path, decides.facts)) else "",
        untimed=QUICK_LOOK if right and not timed and all(record.quick for record in right) else "",
        probes=tuple([ReferenceSamples.of(p.kernel, p.ms, p.slowed_ms) for r in right if (p := r.reference)]),
        clocks=tuple(filter(None, [histogram_of(record) for record in right])),
        doubt=_order_doubt(group, latest) if len(latest) < len(group) else "",
    )


def _order_doubt(group: Sequence[Session], latest: Sequence[Session]) -> str:
    """Return a warning that the last record's build is not the one that ran last by the clock; empty if it is.

    Files may have been joined in another order, and a clock may have jumped: nothing in them tells which.
    """
    others = [record for record in group if record.build != latest[-1].build and not record.compiled_with]
    last, newest = (max((record.started_at for record in some), default="") for some in (latest, others))
    if newest <= last:
        return ""
    return f"its last session in the file is of {last[:19]}, and another build ran at {newest[:19]}: sort its records"


def finding(outcome: Outcome) -> Verdict | None:
    """Return `wrong` or `broken` for a finding on the model, the compiler or the path, else None."""
    if outcome.owner not in (Owner.MODEL, Owner.COMPILER, Owner.PATH) or outcome is Outcome.INCONCLUSIVE:
        return None
    return Verdict.WRONG if outcome is Outcome.WRONG_RESULT else Verdict.BROKEN


def latest_build(group: Sequence[AnySession]) -> list[AnySession]:
    """Return the records of the build that was run last, not counting a baseline's that was run again to compare with.

    The same artifact on a runtime that was rebuilt is another build. A session that is there twice, because files were
    joined, counts once.
    """
    if len(group) == 1:
        return [*group]
    latest = ([record for record in group if not record.compiled_with] or group)[-1]
    same = [record for record in group if record.build == latest.build]
    return list(
        {(session.run, session.started_at, session.outcome, *session.wall_ms): session for session in same}.values()
    )


def measured_in_sequence(base: Side, head: Side) -> bool:
    """Return whether one side was measured after the other, so that the device's drift joins the build's change."""
    pairs = len(base.started) * len(head.started)
    if pairs <= 1:
        return bool(pairs) and base.started != head.started
    ordered = sorted(base.started)
    earlier = sum(bisect_left(ordered, moment) + bisect_right(ordered, moment) for moment in head.started) / 2
    return not INTERLEAVED <= earlier / pairs <= 1 - INTERLEAVED


def same_artifact(base: Side, head: Side) -> bool:
    """Return whether both sides ran one artifact for one case: two cases of it differ in what the device is given."""
    return base.artifact == head.artifact and base.key.case == head.key.case


def same_build(base: Side, head: Side) -> bool:
    """Return whether both sides ran the same, so that only the device can differ."""
    if not same_artifact(base, head):
        return False
    return not (runtime_difference(base, head) or setting_difference([base.settings, head.settings]))


def setting_difference(settings: Sequence[Mapping[str, int]]) -> str:
    """Return how settings differ, in which two times are not comparable; empty if none does, or one is not known."""
    if not any(settings):  # as good as always
        return ""
    values: dict[str, dict[int, None]] = defaultdict(dict)
    for key, value in ((key, value) for single in settings for key, value in single.items()):
        values[key][value] = None
    others = [f"{key} = {' and '.join(map(str, of))}" for key, of in values.items() if len(of) > 1]
    advice = "pin it in the suite, or bless anew"
    return f"ran with {', '.join(others)}, which are two measurements: {advice}" if others else ""


def runtime_difference(base: Side, head: Side) -> str:
    """Return a remark that the two sides ran on different runtimes; empty if they did not, or if one is unknown."""
    if not base.runtime or not head.runtime or base.runtime == head.runtime:
        return ""
    return f"the phone's runtime is another one (base {base.runtime[:8]}, head {head.runtime[:8]})"


def histogram_of(record: Session) -> Histogram:
    """Return the histogram in a record's steadiness; empty without a valid one."""
    shares = record.clock_shares
    if not isinstance(shares, dict) or not all(isinstance(share, (int, float)) for share in shares.values()):
        return {}
    sensible = all(0 <= share <= 1 for share in shares.values()) and WHOLE[0] <= sum(shares.values()) <= WHOLE[1]
    return {str(clock): float(share) for clock, share in shares.items()} if sensible else {}


def clock_difference(base: Sequence[Histogram], head: Sequence[Histogram]) -> str:
    """Return how the clocks of two sides differ; empty if they do not, or if a side does not know them."""
    if not base or not head:
        return ""
    was, now = mean_clocks(base), mean_clocks(head)
    if not was or not now:
        return ""
    moved = sum(abs(was.get(clock, 0) - now.get(clock, 0)) for clock in was.keys() | now.keys()) / 2
    if moved <= MOST_ELSEWHERE:
        return ""
    return f"the GPU ran at other clocks: base {_format_clock(was)}, head {_format_clock(now)}"


def mean_clocks(histograms: Sequence[Histogram]) -> Histogram:
    """Return the mean of those histograms that are not empty; empty without any."""
    filled = [histogram for histogram in histograms if histogram]
    clocks = dict.fromkeys(clock for histogram in filled for clock in histogram)
    return {clock: sum(histogram.get(clock, 0.0) for histogram in filled) / len(filled) for clock in clocks}


def _format_clock(mean: Histogram) -> str:
    """Return the clock that was used most, as a person reads it."""
    clock = max(mean, key=lambda clock: mean[clock])
    return f"{mean[clock]:.0%} of its time at {clock} MHz"
