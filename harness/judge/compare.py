"""Base against head: what became wrong, broken, slower, faster or right again, and what cannot be told.

Correctness is compared first, since a wrong answer has no latency. Latencies are compared over sessions
(`harness.judge.stats.engine`) and held to a false discovery rate over all cases. Only what ran
on the same identity is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.judge.clocks import ran_apart
from harness.judge.comparison import UNGAUGED, Comparison, Result
from harness.judge.fitness import fitness_of
from harness.judge.sides import (
    FEWEST_SESSIONS,
    SeriesKey,
    Side,
    Sides,
    another_runtime,
    apart,
    same_build,
    summarise_sides,
)
from harness.judge.stats import engine, fdr
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Location, Noise
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome


def compare_sides(
    base: Sides,
    head: Sides,
    rules: Rules | None = None,
    *,
    gauged: bool = True,
    noises: Mapping[SeriesKey, Noise] | None = None,
    together: bool = False,
) -> Result:
    """Compare every case of both sides, in head's order; what only base knows comes last.

    Cases whose artifact did not change gauge the run, and so does the reference kernel: if they look changed, no
    latency of it is believed. Unless `gauged`, they are taken for findings too: base and head are two states of a
    device. `noises` is what was learned of some cases. Sides that do not overlap in time bear the noise between days,
    unless they were measured `together`, on one occasion.
    """
    rules, noises = rules or Rules(), noises or {}
    timed = [key for key, side in head.items() if key in base and _both_timed(base[key], side)]
    summarise_sides(side[key] for side in (base, head) for key in timed)
    changes = {key: _latency_change(base[key], head[key], rules, noises.get(key), together=together) for key in timed}
    fitness = fitness_of(base, head, changes, rules) if gauged else UNGAUGED
    if fitness.fit is False:
        why = f"the run is unfit to judge by: {fitness.reasons[0]}"
        believed = {key: change.unproved(why) for key, change in changes.items()}
    else:
        believed = dict(zip(timed, fdr.hold(list(changes.values())), strict=True))
    compared = [_compare(key, base.get(key), side, believed.get(key), together=together) for key, side in head.items()]
    gone = [Comparison(key, side, None, Verdict.GONE) for key, side in base.items() if key not in head]
    return Result(compared + gone, fitness)


def _both_timed(base: Side, head: Side) -> bool:
    return base.outcome is head.outcome is Outcome.OK and bool(base.sessions) and bool(head.sessions)


def _latency_change(base: Side, head: Side, rules: Rules, noise: Noise | None, *, together: bool) -> Change:
    """Compare the sessions of two sides that are right.

    One session on a side is never proof of a change, and sides that ran at other clocks are proof of nothing.
    """
    days = (base.days, head.days) if apart(base, head) and not together else None
    location = noise.location if noise else Location.MIDDLE
    change = engine.compare_summaries(base.summary_by(location), head.summary_by(location), rules, noise, days)
    if change.verdict.changed and min(change.sessions) < FEWEST_SESSIONS:
        return change.unproved("one session is no proof of a change: its samples share its bias")
    clocks = ran_apart(base.clocks, head.clocks)
    return change.unproved(clocks) if clocks else change


def _compare(key: SeriesKey, base: Side | None, head: Side, change: Change | None, *, together: bool) -> Comparison:
    """The comparison of a case. Where a file does not tell which build is meant, only what was found wrong stands."""
    compared = _by_evidence(key, base, head, change, together=together)
    doubt = head.doubt or (base.doubt if base else "")
    if not doubt or compared.verdict in (Verdict.WRONG, Verdict.BROKEN):
        return compared
    unproved = compared.change.unproved(doubt) if compared.change else None
    return replace(compared, verdict=Verdict.INCONCLUSIVE, reasons=(doubt, *compared.reasons), change=unproved)


def _by_evidence(key: SeriesKey, base: Side | None, head: Side, change: Change | None, *, together: bool) -> Comparison:
    if change and base:
        verdict = change.verdict
        told = (*change.reasons, *_remarks(base, head, verdict))
        return Comparison(key, base, head, verdict, told, change, apart=apart(base, head) and not together)
    verdict, reason = _by_outcome(base, head)
    return Comparison(key, base, head, verdict, (reason, *_runtimes(base, head, verdict)))


def _by_outcome(base: Side | None, head: Side) -> tuple[Verdict, str]:
    """The verdict where there are no two latencies to compare."""
    now = f"{head.outcome.value}: {head.message}"
    if head.found:
        if base and base.found:
            return Verdict.SAME, f"base: {base.outcome.value}; head: {now}"
        return head.found, f"{now} (base: {base.outcome.value if base else 'not known'})"
    if head.outcome is not Outcome.OK:
        return Verdict.INCONCLUSIVE, now
    if base is None:
        return Verdict.NEW, "nothing to compare with"
    return _right_now(base, head)


def _right_now(base: Side, head: Side) -> tuple[Verdict, str]:
    if head.vacuous:
        return Verdict.INCONCLUSIVE, head.worth
    if base.outcome is Outcome.OK:
        name, side = ("head", head) if base.sessions else ("base", base)
        why = f" ({side.untimed})" if side.untimed else ""
        verdict = Verdict.INCONCLUSIVE if base.sessions else Verdict.SAME
        return verdict, f"right on both sides; {name} has no latency{why}"
    verdict = Verdict.FIXED if base.found else Verdict.INCONCLUSIVE
    return verdict, f"base: {base.outcome.value}: {base.message}"


def _remarks(base: Side, head: Side, verdict: Verdict) -> tuple[str, ...]:
    """What may explain a change of latency, and whether it is one of the path at all."""
    return (*_causes(base, head, verdict), *_runtimes(base, head, verdict), *_not_its_path(base, head))


def _not_its_path(base: Side, head: Side) -> tuple[str, ...]:
    """Which sides measured plain OpenCL: a latency of one path says nothing of another."""
    sides = {"both sides": base.as_opencl and head.as_opencl, "head": head.as_opencl, "base": base.as_opencl}
    return next(((f"as opencl ({name}): {why}",) for name, why in sides.items() if why), ())


def _runtimes(base: Side | None, head: Side, verdict: Verdict) -> tuple[str, ...]:
    """A rebuilt runtime is named beside whatever it may have changed."""
    told = another_runtime(base, head) if base and verdict is not Verdict.SAME else ""
    return (told,) if told else ()


def _causes(base: Side, head: Side, verdict: Verdict) -> tuple[str, ...]:
    if verdict not in (Verdict.SLOWER, Verdict.FASTER):
        return ()
    if same_build(base, head):
        return ("the artifact is the same: the device changed, not the compiler",)
    if base.artifact == head.artifact:
        return ("the artifact is the same: the runtime or the device changed, not the compiler",)
    other = sorted({*base.quirks} ^ {*head.quirks})
    return (f"worked around on one side only: {', '.join(other)}",) if other else ()
