"""Handsets of one model: two series each, until calibration has shown that a case takes as long on both.

Two phones of a model differ in their chip's bin, their battery and their skin. So a latency of one is held to another's
only where both ran the very same build often enough to exclude a relevant difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.judge import noise_profile
from harness.judge.baseline import Baseline
from harness.judge.noise_profile import NoiseProfile
from harness.judge.sides import SeriesKey, Side, Sides
from harness.judge.stats.pair import Estimate, Rules, relative

_HANDSET = re.compile(r"^(phone-.+-[0-9a-f]{8})-[0-9a-f]{5}$")


def model_of(identity_key: str) -> str:
    """An identity's key without its handset: the same for all phones of one model, driver and ROM."""
    return _HANDSET.sub(r"\1", identity_key)


def of_one_model(some: Iterable[str], others: Iterable[str]) -> str:
    """What to say of two sides' identity keys that differ in the handset alone; empty if there are none."""
    models = {model_of(key) for key in some} & {model_of(key) for key in others}
    return f"{', '.join(sorted(models))} ran on two handsets, which are two series" if models else ""


def profiles_of_models(baselines: Iterable[Baseline], folder: Path) -> dict[SeriesKey, NoiseProfile]:
    """The noise profiles of the baselines' cases on every handset of their models. Raises UsageError for a bad file."""
    calibrated = [kept.name for kept in (folder / noise_profile.FOLDER).glob("*") if kept.is_dir()]
    wanted = {
        SeriesKey(key, one.case)
        for one in baselines
        if one.sessions
        for key in calibrated
        if model_of(key) == model_of(one.identity_key)
    }
    found = {key: noise_profile.find(folder, key.identity, key.case) for key in wanted}
    return {key: one for key, one in found.items() if one}


def pooled(
    heads: Sides, blessed: Sides, profiles: Mapping[SeriesKey, NoiseProfile], rules: Rules
) -> dict[SeriesKey, Side]:
    """By head's key, the base of another handset that may stand in, where head's own handset has none."""

    def stands_in(base: SeriesKey, head: SeriesKey) -> bool:
        same = base.case == head.case and model_of(base.identity) == model_of(head.identity)
        return same and bool(blessed[base].sessions) and not why_apart(head, base, profiles, rules)

    found = {key: next((base for base in blessed if stands_in(base, key)), None) for key in heads if key not in blessed}
    return {key: blessed[base] for key, base in found.items() if base}


def why_apart(one: SeriesKey, other: SeriesKey, profiles: Mapping[SeriesKey, NoiseProfile], rules: Rules) -> str:
    """Why a case's latencies on two handsets are two series; empty if calibration showed that they are one."""
    mine, theirs = profiles.get(one), profiles.get(other)
    if not mine or not theirs:
        return "not both were calibrated"
    if mine.artifact != theirs.artifact:
        return "they were calibrated with different builds"
    variances = [profile.sd**2 / profile.sessions for profile in (mine, theirs)]
    error = math.sqrt(sum(variances))
    shift = math.log(theirs.location_ms / mine.location_ms)
    middle = math.sqrt(mine.location_ms * theirs.location_ms)
    estimate = Estimate(shift, error, min(mine.df, theirs.df), middle)
    margin = rules.relevant_log(middle)
    if estimate.p_within(margin) <= rules.beta:
        return ""
    return f"a difference of {relative(margin):.1%} between them is not excluded ({relative(shift):+.1%})"
