"""Is a run fit to judge latencies by? Unchanged builds and the reference kernel tell the rig from the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.judge.sides import FEWEST_SESSIONS, SeriesKey, Sides, same_build
from harness.judge.stats import engine
from harness.judge.stats.controls import PROBE_LIMITS, Fitness, Probe, Probed, gauge
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Samples
from harness.probes.reference import FACTOR

MOST_REFERENCES = 400
"""On each side; thousands of cases have thousands of sessions."""


def fitness_of(base: Sides, head: Sides, changes: Mapping[SeriesKey, Change], rules: Rules) -> Fitness:
    """Gauge a run by what became of its unchanged builds and of the reference kernel."""
    enough = [key for key in changes if min(len(base[key].sessions), len(head[key].sessions)) >= FEWEST_SESSIONS]
    controls = {str(key): changes[key] for key in enough if same_build(base[key], head[key])}
    probes: dict[str, Probe] = {}
    references: dict[str, Change] = {}
    for identity in dict.fromkeys(key.identity for key in changes):
        was, now = (
            [p for key in changes if key.identity == identity for p in side[key].probes] for side in (base, head)
        )
        probes |= _probes(f"base on {identity}", was) | _probes(f"head on {identity}", now)
        references[identity] = _reference_change(was, now, rules)
    return gauge(controls, probes, references)


def _probes(where: str, of: Sequence[Probed]) -> dict[str, Probe]:
    """One of each kernel that a side has: those of other turns, or of another compiler, last another time."""
    kernels = dict.fromkeys(probed.kernel for probed in of)
    names = {kernel: f"{where}, {kernel}" if len(kernels) > 1 else where for kernel in kernels}
    return {name: _probe([probed for probed in of if probed.kernel == kernel]) for kernel, name in names.items()}


def _probe(of: Sequence[Probed]) -> Probe:
    """All sessions of one kernel, each sample counted."""
    return Probe([ms for p in of for ms in p.reference_ms], [ms for p in of for ms in p.slowed_ms], FACTOR)


def _reference_change(base: Sequence[Probed], head: Sequence[Probed], rules: Rules) -> Change:
    """What became of the reference kernel that both sides measured. Another release may make another kernel of it."""
    same = {probed.kernel for probed in base} & {probed.kernel for probed in head}
    was, now = (_thinned([probed.reference_ms for probed in side if probed.kernel in same]) for side in (base, head))
    change = engine.compare(was, now, replace(rules, floor_ms=0.0), limits=PROBE_LIMITS)
    return change if min(change.sessions) >= FEWEST_SESSIONS else change.unproved("one session is no proof")


def _thinned(sessions: Sequence[Samples]) -> Sequence[Samples]:
    """As many as can be needed, from all over the run: every pair of base and head is compared."""
    return sessions[:: 1 + len(sessions) // MOST_REFERENCES]
