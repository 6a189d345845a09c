"""Base against head: what became wrong, broken, slower, faster or right again, and what cannot be told.

Correctness is compared first, since a wrong answer has no latency. Latencies are compared over sessions
(`harness.judge.stats.engine`) and held to a false discovery rate over all cases. Only what ran on the same identity is
compared. Unchanged builds and the reference kernel tell whether the run is fit to judge latencies by.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from msgspec import Struct, structs

from harness.base.outcome import ExitCode, Outcome, Owner
from harness.base.tables import grouped
from harness.judge.sides import (
    FEWEST_SESSIONS,
    SeriesKey,
    Side,
    Sides,
    clock_difference,
    measured_in_sequence,
    runtime_difference,
    same_artifact,
    same_build,
    setting_difference,
    summarise_sides,
)
from harness.judge.stats import engine, suite
from harness.judge.stats.controls import PROBE_LIMITS, Fitness, gauge
from harness.judge.stats.pair import RULES, Change, Rules
from harness.judge.stats.session import Location, Noise, ReferenceSamples, Samples, as_numbers, summarise_each
from harness.judge.verdict import Verdict
from harness.measure.probes.reference import FACTOR

UNGAUGED = Fitness(None)
MOST_REFERENCES = 400
"""Maximum number of reference samples on each side; thousands of cases have thousands of sessions."""
Pairs = Mapping[SeriesKey, tuple[Side, Side]]
"""Base and head of the series that both sides have."""
ProbesByRig = dict[str, tuple[list[ReferenceSamples], list[ReferenceSamples]]]
"""Reference kernels of base and head, by identity."""


@dataclass(frozen=True)
class KernelChange:
    """Times of the operators of one kind, in one session of each side; None on a side that has none."""

    operator: str
    base_ms: float | None
    head_ms: float | None
    launches: tuple[int, int]
    """Kernels of an inference, base and head."""
    source: str
    """Change of their source: `same`, `changed`, `new` or `gone`; empty where that is not known."""

    @property
    def change_ms(self) -> float:
        """Increase of their time at head, in ms."""
        return (self.head_ms or 0.0) - (self.base_ms or 0.0)


class Comparison(Struct, frozen=True):
    """Result of one case. `base` or `head` is None if that side has no record of it."""

    key: SeriesKey
    base: Side | None
    head: Side | None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    change: Change | None = None
    """Change of the latency, if both sides have one."""
    suspicion: Verdict | None = None
    """`slower` or `faster` if it looks so and is undecided."""
    in_sequence: bool = False
    """Whether base and head were not measured in turns, but one after the other."""
    in_turns: int = 0
    """Number of sessions in turns behind it."""
    kernels: tuple[KernelChange, ...] = ()
    """Times of its kernels on both sides, the largest change first; empty unless they were watched."""

    def shown_ms(self, side: Literal["base", "head"]) -> float:
        """Return a side's latency beside the change: of the estimate, else of the side, else NaN.

        A confirmation's estimate is of its own fresh sessions, which the side does not hold.
        """
        estimated: float = getattr(self.change, f"{side}_ms") if self.change else math.nan
        side_here: Side | None = getattr(self, side)
        if math.isfinite(estimated) or side_here is None:
            return estimated
        return side_here.location_ms

    @property
    def all_reasons(self) -> tuple[str, ...]:
        """The reasons, and whatever the verdict, that being right proves nothing, if that is so."""
        vacuity = self.head.vacuity if self.head else ""
        return (*self.reasons, vacuity) if vacuity and vacuity not in self.reasons else self.reasons

    @property
    def looked(self) -> bool:
        """Whether its sessions could have shown a change, even if they decide nothing."""
        return self.change is not None and math.isfinite(self.change.sees)

    @property
    def confidence(self) -> float | None:
        """1 minus the chance of this verdict if it were untrue; None if that is not known."""
        if not self.verdict.tells:
            return None
        return (self.change.confidence or None) if self.change else 1.0


@dataclass(frozen=True)
class SkippedSeries:
    """A series of records or of baselines that was not compared."""

    key: SeriesKey
    reason: str


@dataclass(frozen=True)
class ComparisonResult:
    """All cases of a comparison, and whether the run was fit to judge latencies by."""

    cases: list[Comparison]
    fitness: Fitness = UNGAUGED
    needed_minutes: float = 0.0
    """Minutes of further sessions that would decide the open cases."""
    left_out: tuple[SkippedSeries, ...] = ()
    """Series that were not compared, with the reason."""

    @property
    def undecided(self) -> list[Comparison]:
        """Cases that look changed and are undecided."""
        return [comparison for comparison in self.cases if comparison.suspicion]


def exit_code(result: ComparisonResult) -> ExitCode:
    """Return the exit code: findings first, then failures of the rig, then undecided slowness.

    What looks faster and is open is no reason to fail, since `faster` is none. Nor is a case that is open and looks
    like neither, as long as its sessions could have shown something.
    """
    verdicts = {comparison.verdict for comparison in result.cases}
    if verdicts & {Verdict.WRONG, Verdict.BROKEN}:
        return ExitCode.WRONG_OR_BROKEN
    if Verdict.SLOWER in verdicts:
        return ExitCode.SLOWER
    lost = any(c.head and c.head.outcome.owner in (Owner.DEVICE, Owner.RIG) for c in result.cases)
    if lost or result.fitness.fit is False:
        return ExitCode.RIG_FAILURE
    if any(comparison.suspicion is Verdict.SLOWER for comparison in result.undecided):
        return ExitCode.UNDECIDED
    looked = any(case.verdict.tells or case.looked for case in result.cases)
    return ExitCode.GOOD if looked else ExitCode.NOTHING_MEASURED


def compare_sides(
    base: Sides,
    head: Sides,
    rules: Rules = RULES,
    *,
    gauged: bool = True,
    noises: Mapping[SeriesKey, Noise] | None = None,
    together: bool = False,
) -> ComparisonResult:
    """Compare every case of both sides, in head's order; what only base knows comes last.

    Cases whose artifact did not change gauge the run, and so does the reference kernel: if they look changed, no
    latency of it is believed. Unless `gauged`, they are taken for findings too: base and head are two states of a
    device. `noises` is what was learned of some cases. Sides that do not overlap in time bear the noise between days,
    unless they were measured `together`, on one occasion.
    """
    noises = noises or {}
    both = {key: (was, now) for key, now in head.items() if (was := base.get(key)) and was.sessions and now.sessions}
    timed = {key: (was, now) for key, (was, now) in both.items() if was.outcome is now.outcome is Outcome.OK}
    summarise_sides(chain.from_iterable(timed.values()))
    changes = {key: _latency_change(*pair, rules, noises.get(key), together=together) for key, pair in timed.items()}
    fitness = fitness_of(timed, changes, rules) if gauged else UNGAUGED
    if fitness.fit is False:
        why = f"the run is unfit to judge by: {fitness.reasons[0]}"
        believed = {key: change.without_proof(why) for key, change in changes.items()}
    else:
        believed = dict(zip(timed, suite.hold(list(changes.values())), strict=True))
    compared = [_compare(key, base.get(key), side, believed.get(key), together=together) for key, side in head.items()]
    gone = [Comparison(key, side, None, Verdict.GONE) for key, side in base.items() if key not in head]
    cases = [*(_name_other_mode(case, base) for case in compared), *(_name_other_mode(case, head) for case in gone)]
    return ComparisonResult(cases, fitness)


def _name_other_mode(comparison: Comparison, there: Sides) -> Comparison:
    """Say of a case that stands alone that the other side ran it the other way."""
    key = comparison.key
    if (comparison.base and comparison.head) or key._replace(as_shipped=not key.as_shipped) not in there:
        return comparison
    mode = "with workarounds" if key.as_shipped else "as shipped"
    reason = f"the other side ran it {mode}, which is another series"
    return structs.replace(comparison, reasons=(*comparison.reasons, reason))


def _latency_change(base: Side, head: Side, rules: Rules, noise: Noise | None, *, together: bool) -> Change:
    """Compare the sessions of two sides that are right.

    One session on a side is never proof of a change, and sides with other settings or clocks are proof of nothing.
    """
    days = (base.days, head.days) if measured_in_sequence(base, head) and not together else None
    location = noise.location if noise else Location.MIDDLE
    change = engine.compare_summaries(base.summary_by(location), head.summary_by(location), rules, noise, days)
    if change.verdict.changed and min(change.sessions) < FEWEST_SESSIONS:
        return change.without_proof("one session is no proof of a change: its samples share its bias")
    other = setting_difference([base.settings, head.settings]) or clock_difference(base.clocks, head.clocks)
    return change.without_proof(other) if other else change


def _compare(key: SeriesKey, base: Side | None, head: Side, change: Change | None, *, together: bool) -> Comparison:
    """Return the comparison of a case.

    Where a file does not tell which build is meant, only what was found wrong stands.
    """
    compared = _by_evidence(key, base, head, change, together=together)
    doubt = head.doubt or (base.doubt if base else "")
    if not doubt or compared.verdict in (Verdict.WRONG, Verdict.BROKEN):
        return compared
    unproved = compared.change.without_proof(doubt) if compared.change else None
    reasons = (doubt, *compared.reasons)
    return structs.replace(compared, verdict=Verdict.INCONCLUSIVE, reasons=reasons, change=unproved)


def _by_evidence(key: SeriesKey, base: Side | None, head: Side, change: Change | None, *, together: bool) -> Comparison:
    if change and base:
        verdict = change.verdict
        why = (*_causes(base, head, verdict), *_runtimes(base, head, verdict), *_not_its_path(base, head))
        reasons = (*change.reasons, *why)
        return Comparison(
            key, base, head, verdict, reasons, change, in_sequence=measured_in_sequence(base, head) and not together
        )
    verdict, reason = _by_outcome(base, head)
    return Comparison(key, base, head, verdict, (reason, *_runtimes(base, head, verdict)))


def _by_outcome(base: Side | None, head: Side) -> tuple[Verdict, str]:
    """Return the verdict where there are no two latencies to compare."""
    now = f"{head.outcome.value}: {head.message}"
    if head.finding:
        if base and base.finding:
            return Verdict.SAME, f"base: {base.outcome.value}; head: {now}"
        return head.finding, f"{now} (base: {base.outcome.value if base else 'not known'})"
    if head.outcome is not Outcome.OK:
        return Verdict.INCONCLUSIVE, now
    if base is None:
        return Verdict.NEW, "nothing to compare with"
    return _right_now(base, head)


def _right_now(base: Side, head: Side) -> tuple[Verdict, str]:
    if head.vacuous:
        return Verdict.INCONCLUSIVE, head.vacuity
    if base.outcome is Outcome.OK:
        name, side = ("head", head) if base.sessions else ("base", base)
        why = f" ({side.untimed})" if side.untimed else ""
        verdict = Verdict.INCONCLUSIVE if base.sessions else Verdict.SAME
        return verdict, f"right on both sides; {name} has no latency{why}"
    verdict = Verdict.FIXED if base.finding else Verdict.INCONCLUSIVE
    return verdict, f"base: {base.outcome.value}: {base.message}"


def _not_its_path(base: Side, head: Side) -> tuple[str, ...]:
    """Which sides measured plain OpenCL: a latency of one path says nothing of another."""
    if not base.as_opencl and not head.as_opencl:
        return ()
    sides = {"both sides": base.as_opencl and head.as_opencl, "head": head.as_opencl, "base": base.as_opencl}
    return next(((f"as opencl ({name}): {why}",) for name, why in sides.items() if why), ())


def _runtimes(base: Side | None, head: Side, verdict: Verdict) -> tuple[str, ...]:
    """Name a rebuilt runtime beside everything that it may have changed."""
    other = runtime_difference(base, head) if base and verdict is not Verdict.SAME else ""
    return (other,) if other else ()


def _causes(base: Side, head: Side, verdict: Verdict) -> tuple[str, ...]:
    if verdict not in (Verdict.SLOWER, Verdict.FASTER):
        return ()
    if same_build(base, head):
        return ("the artifact is the same: the device changed, not the compiler",)
    if same_artifact(base, head):
        return ("the artifact is the same: the runtime or the device changed, not the compiler",)
    other = sorted({*base.quirks} ^ {*head.quirks})
    return (f"worked around on one side only: {', '.join(other)}",) if other else ()


def fitness_of(timed: Pairs, changes: Mapping[SeriesKey, Change], rules: Rules) -> Fitness:
    """Gauge a run by its unchanged builds and by the reference kernel."""
    controls = {
        str(key): changes[key]
        for key, pair in timed.items()
        if same_build(*pair) and min(len(side.sessions) for side in pair) >= FEWEST_SESSIONS
    }
    rigs = probes_by_rig(timed)
    return gauge(controls, joined_probes(rigs), _reference_changes(rigs, rules), FACTOR)


def probes_by_rig(pairs: Pairs) -> ProbesByRig:
    """Return the sessions of the reference kernel on both sides, by identity."""
    rigs: ProbesByRig = defaultdict(lambda: ([], []))
    for key, (base, head) in pairs.items():
        was, now = rigs[key.identity]
        was += base.probes
        now += head.probes
    return rigs


def joined_probes(rigs: ProbesByRig) -> dict[str, ReferenceSamples]:
    """Join the sessions of each kernel of each side, by where it ran; that of another compiler lasts another time."""
    probes: dict[str, ReferenceSamples] = {}
    for identity, sides in rigs.items():
        for name, side in zip(("base", "head"), sides, strict=True):
            kernels = grouped(side, lambda probe: probe.kernel)
            for kernel, of in kernels.items():
                where = f"{name} on {identity}, {kernel}" if len(kernels) > 1 else f"{name} on {identity}"
                plain = array("d", b"".join([as_numbers(probe.reference_ms) for probe in of]))
                slowed = array("d", b"".join([as_numbers(probe.slowed_ms) for probe in of]))
                probes[where] = ReferenceSamples(kernel, plain, slowed)
    return probes


def _reference_changes(rigs: ProbesByRig, rules: Rules) -> dict[str, Change]:
    """Compare the reference kernel of both sides, by identity. Another release may make another kernel of it."""
    samples: list[Sequence[Samples]] = []
    for sides in rigs.values():
        was, now = ({probe.kernel for probe in side} for side in sides)
        common = was & now
        each = ([probe.reference_ms for probe in side if probe.kernel in common] for side in sides)
        samples += (some[:: 1 + len(some) // MOST_REFERENCES] for some in each)  # every pair of them is compared
    summaries, exact = iter(summarise_each(samples, PROBE_LIMITS)), replace(rules, floor_ms=0.0)
    changes = {rig: engine.compare_summaries(next(summaries), next(summaries), exact) for rig in rigs}
    return {
        rig: change if min(change.sessions) >= FEWEST_SESSIONS else change.without_proof("one session is no proof")
        for rig, change in changes.items()
    }
