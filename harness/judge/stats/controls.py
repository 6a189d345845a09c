"""Is this run fit to judge by? Cases whose artifact did not change must not look changed, and a slowed kernel must.

A reference kernel belongs to no case, so it is the rig's own series: if it changed, the compiler is not to blame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.judge.stats import robust
from harness.judge.stats.pair import Change
from harness.judge.stats.session import ReferenceSamples, SampleLimits, as_numbers, invalid
from harness.judge.stats.shares import signed_share
from harness.judge.stats.suite import adjusted_p_values

FALSE_ALARM_RATE = 0.05
"""Chance that a sound run is refused because a control looks changed."""
COMMON_SHIFT = 0.01
"""Controls that move together by less than this (a fraction) make no run unfit."""
COMMON_P = 0.01
"""Sign test: controls that move one way this improbably move together."""
MEDIAN_LOSS = 1.2533
"""Standard error of the median over that of the mean, for normal noise: the root of pi / 2."""
SURE = 1.645
"""Standard errors of a one-sided bound at 95 %."""
PROBE_LIMITS = SampleLimits(fewest=3, independent=0, warm_up=1, drift=math.inf, modes_apart=math.inf, steady=True)
"""A handful of samples of many sessions: they only have to be times. On a clock of 1 µs a steady kernel's are all the
same, and that the slowed one takes longer shows that the clock runs."""


@dataclass(frozen=True)
class Fitness:
    """Whether a run may be judged by."""

    fit: bool | None
    """Whether the run is fit to judge by; None without controls."""
    reasons: tuple[str, ...] = ()


def gauge(
    controls: Mapping[str, Change],
    probes: Mapping[str, ReferenceSamples] | None = None,
    references: Mapping[str, Change] | None = None,
    factor: float = 1.0,
) -> Fitness:
    """Judge a run by its controls: changes of series whose artifact is the same on both sides, by name.

    `probes` and `references` say of each part of the run (base, head, a device) how the reference kernels did, and how
    the plain one changed between base and head. The slowed one was made `factor` times slower. Never raises for data.
    """
    probes, references = probes or {}, references or {}
    tested = {name: change for name, change in controls.items() if change.p == change.p}
    moves = [change.relative for change in tested.values()]
    complaints = [_alarms(tested), _common_shift(moves), _losses(controls, tested)]
    complaints += [blindness(where, probe, factor) for where, probe in probes.items()]
    complaints += [_reference_shift(where, change) for where, change in references.items()]
    reasons = tuple(reason for reason in complaints if reason)
    fit = not reasons if tested or probes else None
    if fit is None:
        reasons = (*reasons, "no artifact stayed the same and no probe ran: the noise of this run is unknown")
    return Fitness(fit, reasons)


def _alarms(tested: Mapping[str, Change]) -> str:
    adjusted = adjusted_p_values([change.p for change in tested.values()])
    names = [
        name for name, p in zip(tested, adjusted, strict=True) if p <= FALSE_ALARM_RATE and tested[name].verdict.changed
    ]
    if not names:
        return ""
    return f"{len(names)} of {len(tested)} unchanged artifacts look changed: {', '.join(names[:3])}"


def _common_shift(moves: Sequence[float]) -> str:
    ups, downs = sum(move > 0 for move in moves), sum(move < 0 for move in moves)
    if not ups + downs or abs(robust.median(moves)) < COMMON_SHIFT:
        return ""
    from scipy.stats import binomtest  # takes long to import

    if binomtest(ups, ups + downs).pvalue > COMMON_P:
        return ""
    most, shift = max(ups, downs), robust.median(moves)
    together = f"{most} of {len(moves)} unchanged artifacts moved the same way"
    return f"{together}, by {signed_share(shift)}: the device changed"


def _losses(controls: Mapping[str, Change], tested: Mapping[str, Change]) -> str:
    lost = len(controls) - len(tested)
    return f"{lost} of {len(controls)} unchanged artifacts could not be measured" if 2 * lost > len(controls) else ""


def blindness(where: str, probe: ReferenceSamples, factor: float) -> str:
    """Return a complaint if less than half of the slowing is certain, as of samples that are too noisy."""
    for what, samples in (("reference", probe.reference_ms), ("slowed", probe.slowed_ms)):
        if complaint := invalid(as_numbers(samples), PROBE_LIMITS):
            return f"the {what} kernel could not be measured ({where}): {complaint}"
    plain, slowed = (np.log(samples) for samples in (probe.reference_ms, probe.slowed_ms))
    slowdown = robust.median(slowed) - robust.median(plain)
    error = MEDIAN_LOSS * math.hypot(*(robust.spread(logs) / math.sqrt(len(logs)) for logs in (plain, slowed)))
    if slowdown + SURE * error >= math.log1p((factor - 1) / 2):
        return ""
    measured = f"measures {math.exp(slowdown):.2f} times"
    return f"a kernel made {factor:g} times slower {measured} ({where}): slowness is not seen"


def _reference_shift(where: str, change: Change) -> str:
    if not change.verdict.changed:
        return ""
    return f"the reference kernel moved by {signed_share(change.relative)} ({where}): the rig changed, not the compiler"
