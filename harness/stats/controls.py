"""Is this run fit to judge by? Cases whose artifact did not change must not look changed, and a slowed kernel must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.stats import robust
from harness.stats.fdr import adjusted
from harness.stats.pair import Change
from harness.stats.samples import Limits, check

COMMON_SHIFT = 0.01
"""Controls that move together by less than this (a fraction) make no run unfit."""
COMMON_P = 0.01
"""Sign test: controls that move one way this improbably move together."""
PROBE_LIMITS = Limits(fewest=3)


@dataclass(frozen=True)
class Probe:
    """A reference kernel and one made slower on purpose, both measured in this run."""

    reference_ms: Sequence[float]
    slowed_ms: Sequence[float]
    factor: float
    """How many times slower the second was made."""


@dataclass(frozen=True)
class Fitness:
    """Whether a run may be judged by."""

    fit: bool | None
    """None if there was nothing to gauge by."""
    shift: float
    """Median relative change of the controls, a fraction; 0 if there are none."""
    controls: int
    reasons: tuple[str, ...] = ()


def gauge(controls: Mapping[str, Change], probe: Probe | None = None, rate: float = 0.05) -> Fitness:
    """Judge a run by its controls: changes of series whose artifact is the same on both sides, by name.

    `rate` is the chance that a sound run is refused because a control looks changed. Never raises for data.
    """
    tested = {name: change for name, change in controls.items() if change.p == change.p}
    moves = [change.relative for change in tested.values()]
    found = [_changed(tested, rate), _together(moves), _unmeasured(controls, tested), _blind(probe)]
    reasons = tuple(reason for reason in found if reason)
    fit = not reasons if tested or probe else None
    if fit is None:
        reasons = (*reasons, "no artifact stayed the same and no probe was run: nothing tells this run's noise")
    return Fitness(fit, robust.median(moves) if moves else 0.0, len(tested), reasons)


def _changed(tested: Mapping[str, Change], rate: float) -> str:
    held = adjusted([change.p for change in tested.values()])
    names = [name for name, p in zip(tested, held, strict=True) if p <= rate and tested[name].verdict.changed]
    if not names:
        return ""
    return f"{len(names)} of {len(tested)} unchanged artifacts look changed: {', '.join(names[:3])}"


def _together(moves: Sequence[float]) -> str:
    from scipy.stats import binomtest

    ups, downs = sum(move > 0 for move in moves), sum(move < 0 for move in moves)
    if not ups + downs or binomtest(ups, ups + downs).pvalue > COMMON_P or abs(robust.median(moves)) < COMMON_SHIFT:
        return ""
    most, shift = max(ups, downs), robust.median(moves)
    return f"{most} of {len(moves)} unchanged artifacts moved the same way, by {shift:+.1%}: the device changed"


def _unmeasured(controls: Mapping[str, Change], tested: Mapping[str, Change]) -> str:
    lost = len(controls) - len(tested)
    return f"{lost} of {len(controls)} unchanged artifacts could not be measured" if 2 * lost > len(controls) else ""


def _blind(probe: Probe | None) -> str:
    """A slowed kernel has to show at least half of its slowing."""
    if probe is None:
        return ""
    for what, samples in (("reference", probe.reference_ms), ("slowed", probe.slowed_ms)):
        quality = check(samples, PROBE_LIMITS)
        if not quality.ok:
            return f"the {what} kernel could not be measured: {quality.reasons[0]}"
    ratio = robust.location(probe.slowed_ms) / robust.location(probe.reference_ms)
    if ratio >= 1 + (probe.factor - 1) / 2:
        return ""
    return f"a kernel made {probe.factor:g} times slower measures {ratio:.2f} times: slowness is not seen"
