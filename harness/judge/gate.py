"""The gate: records held to what was called good, within what is known of the rig's noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.judge import noise_profile
from harness.judge.baseline import Baseline, load, sides
from harness.judge.compare import compare_sides
from harness.judge.comparison import Result
from harness.judge.confirm import Budget, Measurer, judge
from harness.judge.handsets import pooled, profiles_of_models
from harness.judge.noise_model import NoiseModel, history_records, kept_records, learn
from harness.judge.noise_profile import NoiseProfile
from harness.judge.sides import SeriesKey, Sides
from harness.judge.stats.pair import Rules

HISTORY = Path(".asv/results")
"""Where `adreno-bench history run` keeps what it measured, below the folder that commands are started in."""


@dataclass(frozen=True)
class Gate:
    """Baselines, and how closely records are held to them."""

    baselines: Sequence[Baseline]
    known: NoiseModel
    """What is known of the noise."""
    rules: Rules
    most_sessions: int
    """That the verdict on one case may cost."""
    as_shipped: bool = False
    """Whether records that ran as shipped are held to them, instead of the others."""
    of_models: Mapping[SeriesKey, NoiseProfile] = field(default_factory=dict)
    """What calibration found of the same cases on every handset of their models."""

    @classmethod
    def read(
        cls,
        folder: Path,
        records: Path | None,
        wanted: Callable[[str], bool],
        rules: Rules,
        most_sessions: int,
        *,
        as_shipped: bool,
        history: Path = HISTORY,
    ) -> Gate:
        """The baselines of the wanted cases, and what earlier records and a history's tell of the noise.

        Without `records` it is the kept sessions themselves that are judged, and only calibration may tell their noise.
        Raises UsageError for a file that is not good.
        """
        baselines = [one for one in load(folder) if wanted(one.case)]
        timed = [one.side.key for one in baselines if one.sessions]
        found = {key: noise_profile.find(folder, key.identity, key.case) for key in timed}
        profiles = {key: one for key, one in found.items() if one}
        cases = {one.case for one in baselines}
        kept = [*history_records(history, cases), *kept_records(records, cases)] if records else []
        known = learn(kept, baselines if records else [], profiles)
        return cls(baselines, known, rules, most_sessions, as_shipped, profiles_of_models(baselines, folder))

    def judged(self, found: Sides, measurer: Measurer, budget: Budget | None = None) -> Result:
        """Compare with the baselines of the identities that were found, and of handsets that may stand in for them."""
        meant = [side for key, side in found.items() if key.as_shipped is self.as_shipped]
        heads = {key: replace(side, key=key) for side in meant for key in [side.key._replace(as_shipped=False)]}
        here = {key.identity for key in heads}
        blessed = sides(self.baselines)
        bases = {key: side for key, side in blessed.items() if key.identity in here}
        bases |= pooled(heads, blessed, self.of_models, self.rules)
        noises = self.known.noises(heads)
        compared = compare_sides(bases, heads, self.rules, noises=noises)
        kernels = self.known.kernels.noises(heads) if self.known.kernels else {}
        return judge(compared, self.rules, measurer, self.most_sessions, noises, budget, kernels)
