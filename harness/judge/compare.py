"""Base against head: what became wrong, broken, slower, faster or right again, and what cannot be told.

Correctness is compared first, since a wrong answer has no latency. Latencies are compared over sessions
(`harness.judge.stats.pair`) and held to a false discovery rate over all cases. Only what ran
on the same identity is compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from harness.cases.case import Case
from harness.failures import UsageError
from harness.judge.stats import fdr, pair, robust
from harness.judge.stats.controls import PROBE_LIMITS, Fitness, Probe, Probed, gauge
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Noise, Samples, summarise
from harness.judge.verdict import Verdict
from harness.run.outcome import ExitCode, Outcome, Owner
from harness.run.record import Record
from harness.run.reference import FACTOR

FEWEST_SESSIONS = 2
"""On each side, before a latency may be called changed: the samples of one session share its bias."""
MOST_REFERENCES = 400
"""On each side; thousands of cases have thousands of sessions."""


class SeriesKey(NamedTuple):
    """What has to be equal for two sides to be comparable."""

    identity: str
    case: str
    as_shipped: bool = False

    def __str__(self) -> str:
        return f"{self.case}{' as shipped' if self.as_shipped else ''}"


@dataclass(frozen=True)
class Side:
    """What is known of a case on one side: all sessions of one artifact on one identity."""

    key: SeriesKey
    outcome: Outcome
    """`ok`, or the worst that was found in any session."""
    message: str = ""
    sessions: tuple[Samples, ...] = ()
    """Samples of `wall_ms`, one tuple for each session that was right."""
    artifact: str = ""
    quirks: tuple[str, ...] = ()
    tvm: str = ""
    emulated: tuple[str, ...] = ()
    probes: tuple[Probed, ...] = ()
    """The reference kernel, in each session that measured it."""

    @cached_property
    def location_ms(self) -> float:
        """Hodges-Lehmann location over the usable sessions; NaN without any."""
        good, _ = summarise(self.sessions)
        return math.exp(robust.location([session.log_ms for session in good])) if good else math.nan

    @property
    def found(self) -> Verdict | None:
        """Whether it is wrong or broken, and not by the rig's fault."""
        return finding(self.outcome)


@dataclass(frozen=True)
class Comparison:
    """What became of one case. `base` or `head` is None where a side knows nothing of it."""

    key: SeriesKey
    base: Side | None
    head: Side | None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    change: Change | None = None
    """Of the latency, where both sides have one."""

    @property
    def confidence(self) -> float | None:
        """One less the chance of this verdict if it were untrue; None where none can be given."""
        if not self.verdict.tells:
            return None
        return (self.change.confidence or None) if self.change else 1.0


Sides = Mapping[SeriesKey, Side]

UNGAUGED = Fitness(None, 0.0, 0)


@dataclass(frozen=True)
class Result:
    """All cases of a comparison, and whether the run was fit to judge latencies by."""

    cases: list[Comparison]
    fitness: Fitness = UNGAUGED


def sides_of(records: Iterable[Record]) -> dict[SeriesKey, Side]:
    """One side for each case, identity and way of shipping: all sessions of the latest artifact.

    Raises UsageError for a record whose case is none.
    """
    grouped: dict[SeriesKey, list[Record]] = defaultdict(list)
    for record in records:
        require_case_id(record.case)
        grouped[SeriesKey(record.identity_key, record.case, record.as_shipped)].append(record)
    return {key: _side(key, group) for key, group in grouped.items()}


def require_case_id(text: str) -> None:
    """Raise UsageError unless the text is a case id; it came from a file of others."""
    try:
        Case.parse(text)
    except ValueError as error:
        raise UsageError(str(error), hint="this record was not written by adreno-bench") from None


def _side(key: SeriesKey, group: Sequence[Record]) -> Side:
    latest = latest_build(group)
    right = [record for record in latest if record.outcome is Outcome.OK]
    found = [record for record in latest if finding(record.outcome)]
    decides = (found or right or latest)[-1]
    return Side(
        key=key,
        outcome=decides.outcome,
        message=decides.message,
        sessions=tuple(tuple(record.wall_ms) for record in right if record.wall_ms),
        artifact=decides.artifact,
        quirks=decides.quirks,
        tvm=decides.tvm,
        emulated=decides.emulated,
        probes=tuple(Probed(r.reference, r.reference_ms, r.slowed_ms) for r in right if r.reference),
    )


def finding(outcome: Outcome) -> Verdict | None:
    """`wrong` or `broken`, if that is what an outcome says of the compiler or the path."""
    if outcome.owner not in (Owner.COMPILER, Owner.PATH) or outcome is Outcome.INCONCLUSIVE:
        return None
    return Verdict.WRONG if outcome is Outcome.WRONG_RESULT else Verdict.BROKEN


def latest_build(group: Sequence[Record]) -> list[Record]:
    """The records of the artifact that was run last."""
    return [record for record in group if record.artifact == group[-1].artifact]


def compare_sides(
    base: Sides,
    head: Sides,
    rules: Rules | None = None,
    *,
    gauged: bool = True,
    noises: Mapping[SeriesKey, Noise] | None = None,
) -> Result:
    """Compare every case of both sides, in head's order; what only base knows comes last.

    Cases whose artifact did not change gauge the run, and so does the reference kernel: if they look changed, no
    latency of it is believed. Unless `gauged`, they are taken for findings too: base and head are two states of a
    device. `noises` is what calibration knows of some cases.
    """
    rules, noises = rules or Rules(), noises or {}
    timed = [key for key, side in head.items() if key in base and _both_timed(base[key], side)]
    changes = {key: latency_change(base[key], head[key], rules, noises.get(key)) for key in timed}
    fitness = _gauge(base, head, changes, rules) if gauged else UNGAUGED
    if fitness.fit is False:
        why = f"the run is unfit to judge by: {fitness.reasons[0]}"
        believed = {key: unproved(change, why) for key, change in changes.items()}
    else:
        believed = dict(zip(timed, fdr.hold(list(changes.values())), strict=True))
    compared = [_compare(key, base.get(key), side, believed.get(key)) for key, side in head.items()]
    gone = [Comparison(key, side, None, Verdict.GONE) for key, side in base.items() if key not in head]
    return Result(compared + gone, fitness)


def _gauge(base: Sides, head: Sides, changes: Mapping[SeriesKey, Change], rules: Rules) -> Fitness:
    enough = [key for key in changes if min(len(base[key].sessions), len(head[key].sessions)) >= FEWEST_SESSIONS]
    controls = {str(key): changes[key] for key in enough if base[key].artifact == head[key].artifact}
    probes: dict[str, Probe] = {}
    references: dict[str, Change] = {}
    for identity in dict.fromkeys(key.identity for key in changes):
        was, now = (
            [p for key in changes if key.identity == identity for p in side[key].probes] for side in (base, head)
        )
        probes |= {f"{what} on {identity}": _probe(of) for what, of in (("base", was), ("head", now)) if of}
        references[identity] = _reference_change(was, now, rules)
    return gauge(controls, probes, references)


def _probe(of: Sequence[Probed]) -> Probe:
    """All sessions of one side, each sample counted."""
    return Probe([ms for p in of for ms in p.reference_ms], [ms for p in of for ms in p.slowed_ms], FACTOR)


def _reference_change(base: Sequence[Probed], head: Sequence[Probed], rules: Rules) -> Change:
    """What became of the reference kernel that both sides measured. Another release may make another kernel of it."""
    same = {probed.kernel for probed in base} & {probed.kernel for probed in head}
    was, now = (_thinned([probed.reference_ms for probed in side if probed.kernel in same]) for side in (base, head))
    change = pair.compare(was, now, replace(rules, floor_ms=0.0), limits=PROBE_LIMITS)
    return change if min(change.sessions) >= FEWEST_SESSIONS else unproved(change, "one session is no proof")


def _thinned(sessions: Sequence[Samples]) -> Sequence[Samples]:
    """As many as can be needed, from all over the run: every pair of base and head is compared."""
    return sessions[:: 1 + len(sessions) // MOST_REFERENCES]


def _both_timed(base: Side, head: Side) -> bool:
    return base.outcome is head.outcome is Outcome.OK and bool(base.sessions) and bool(head.sessions)


def latency_change(base: Side, head: Side, rules: Rules, noise: Noise | None = None) -> Change:
    """Compare the sessions of two sides that are right. One session on a side is never proof of a change."""
    change = pair.compare(base.sessions, head.sessions, rules, noise)
    if change.verdict.changed and min(change.sessions) < FEWEST_SESSIONS:
        return unproved(change, "one session is no proof of a change: its samples share its bias")
    return change


def unproved(change: Change, reason: str) -> Change:
    """The same change, no longer believed."""
    return replace(change, verdict=Verdict.INCONCLUSIVE, confidence=0.0, reasons=(reason, *change.reasons))


def _compare(key: SeriesKey, base: Side | None, head: Side, change: Change | None) -> Comparison:
    if change and base:
        verdict = change.verdict
        return Comparison(key, base, head, verdict, (*change.reasons, *_remarks(base, head, verdict)), change)
    verdict, reason = _by_outcome(base, head)
    return Comparison(key, base, head, verdict, (reason,))


def _by_outcome(base: Side | None, head: Side) -> tuple[Verdict, str]:
    """The verdict where there are no two latencies to compare."""
    now = f"{head.outcome.value}: {head.message}"
    if head.found:
        if base and base.found:
            return Verdict.SAME, f"base: {base.outcome.value}; head: {now}"
        return head.found, f"{now} (base: {base.outcome.value if base else 'not known'})"
    if head.outcome is not Outcome.OK:
        return Verdict.INCONCLUSIVE, now
    return _right_now(base) if base else (Verdict.NEW, "nothing to compare with")


def _right_now(base: Side) -> tuple[Verdict, str]:
    if base.outcome is Outcome.OK:
        return Verdict.SAME, f"right on both sides; {'head' if base.sessions else 'base'} has no latency"
    verdict = Verdict.FIXED if base.found else Verdict.INCONCLUSIVE
    return verdict, f"base: {base.outcome.value}: {base.message}"


def _remarks(base: Side, head: Side, verdict: Verdict) -> tuple[str, ...]:
    """What may explain a change of latency."""
    if verdict not in (Verdict.SLOWER, Verdict.FASTER):
        return ()
    if base.artifact == head.artifact:
        return ("the artifact is the same: the device changed, not the compiler",)
    other = sorted({*base.quirks} ^ {*head.quirks})
    return (f"worked around on one side only: {', '.join(other)}",) if other else ()


def exit_code(result: Result) -> ExitCode:
    """What a comparison is worth to a shell. Findings come before failures of the rig, as in docs/glossary.md."""
    verdicts = {comparison.verdict for comparison in result.cases}
    if verdicts & {Verdict.WRONG, Verdict.BROKEN}:
        return ExitCode.WRONG_OR_BROKEN
    if Verdict.SLOWER in verdicts:
        return ExitCode.SLOWER
    lost = any(c.head and c.head.outcome.owner in (Owner.DEVICE, Owner.RIG) for c in result.cases)
    if lost or result.fitness.fit is False:
        return ExitCode.RIG_FAILURE
    return ExitCode.GOOD if any(verdict.tells for verdict in verdicts) else ExitCode.NOTHING_MEASURED
