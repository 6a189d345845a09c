"""The gate: records held to what was called good, within what is known of the rig's noise.

Handsets of one model are two series, until calibration has shown that a case takes as long on both: two phones of a
model differ in their chip's bin, their battery and their skin. So a latency of one is held to another's only where both
ran the very same build often enough to exclude a relevant difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.base.failures import UsageError
from harness.base.plan import Plan
from harness.base.tables import grouped
from harness.compile.artifacts.artifact import Answers, Artifact, Built
from harness.compile.artifacts.pool import Builder
from harness.judge.baseline import Baseline, load, sides_in
from harness.judge.compare import Comparison, ComparisonResult, SkippedSeries, compare_sides
from harness.judge.confirm import Explain, Measurer, SessionBudget, settle
from harness.judge.in_turns import Measure
from harness.judge.noise import PROFILES, NoiseModel, NoiseProfile, find_profile, history_records, learn, stored_records
from harness.judge.sides import SeriesKey, Side, Sides, model_of
from harness.judge.stats.pair import Estimate, Rules, relative
from harness.judge.stats.shares import signed_share
from harness.judge.stats.turns import Arm
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import Progress
from harness.measure.records.record import Record, RecordFile, Releases

AS_SHIPPED = "ran as shipped, and this gate compares what ran with workarounds: pass --as-shipped"
WORKED_AROUND = "ran with workarounds, and this gate compares what ran as shipped: leave --as-shipped out"
SUSTAINED = "is a sustained run, which no baseline is"
OTHER_IDENTITY = "has a baseline of another identity"
NO_RECORD = "has a baseline and no record"

HISTORY = Path(".asv/results")
"""Folder of the results of `adreno-bench history run`, below the working directory."""


@dataclass(frozen=True)
class Gate:
    """Baselines, and the rules by which records are compared with them."""

    blessed: Sides
    model: NoiseModel
    """The noise of each series."""
    rules: Rules
    most_sessions: int
    """Maximum number of sessions per case."""
    as_shipped: bool = False
    """Whether to compare records that ran as shipped, instead of the others."""
    of_models: Mapping[SeriesKey, NoiseProfile] = field(default_factory=dict)
    """What calibration found of the same cases on every handset of their models."""
    baselines: Sequence[Baseline] = ()
    """Those of `blessed`, where cases are to be measured again: 100,000 take 300 MB."""

    @classmethod
    def read(
        cls,
        folder: Path,
        records: Path | None,
        choose: Callable[[str], bool],
        rules: Rules,
        most_sessions: int,
        *,
        as_shipped: bool,
        history: Path = HISTORY,
    ) -> Gate:
        """Return the baselines of the wanted cases, and the noise from earlier records and from a history.

        Without `records` the stored sessions themselves are judged, and their noise comes from calibration only. Raises
        UsageError for a bad file.
        """
        baselines = [baseline for baseline in load(folder) if choose(baseline.case)] if records else []
        by_series = {side.key: side for side in (baseline.side for baseline in baselines)}
        blessed = by_series if records else sides_in(folder, choose)
        calibrated = {folder_of_machine.name for folder_of_machine in (folder / PROFILES).glob("*")}
        timed = [key for key, side in blessed.items() if side.sessions and key.identity in calibrated]
        profiles = {key: profile for key in timed if (profile := find_profile(folder, key.identity, key.case))}
        cases = {key.case for key in blessed}
        history_and_records = [*history_records(history, cases), *stored_records(records, cases)] if records else []
        model = learn(history_and_records, baselines, profiles)
        return cls(blessed, model, rules, most_sessions, as_shipped, profiles_of_models(blessed, folder), baselines)

    def pinned(self, plans: Iterable[Plan], identity: str) -> list[Plan]:
        """Return plans with the settings that their baselines were measured with, so that both are one measurement."""
        blessed = {key.case: side.settings for key, side in self.blessed.items() if key.identity == identity}
        return [replace(plan, settings=blessed.get(plan.case.id, {})) for plan in plans]

    def compare(
        self,
        sides: Sides,
        measurer: Measurer,
        budget: SessionBudget | None = None,
        sustained: Collection[SeriesKey] = (),
        explain: Explain | None = None,
    ) -> ComparisonResult:
        """Compare with the baselines of the identities that were found, and of handsets that may stand in for them.

        `sustained` are the series of the records that ran without a pause: they are only named. `explain` watches the
        kernels of what is slower or faster.
        """
        heads = {key: side for key, side in sides.items() if key.as_shipped is self.as_shipped}
        if self.as_shipped:
            heads = {key._replace(as_shipped=False): side for key, side in heads.items()}
        here = {key.identity for key in heads}
        bases = {key: side for key, side in self.blessed.items() if key.identity in here}
        bases |= pool_handsets(heads, self.blessed, self.of_models, self.rules)
        noises = self.model.noises(heads)
        compared = compare_sides(bases, heads, self.rules, noises=noises)
        kernels = self.model.kernels.noises(heads) if self.model.kernels else {}
        settled = settle(compared, self.rules, measurer, self.most_sessions, noises, budget, kernels, explain)
        return replace(settled, left_out=tuple(self._left_out(sides, bases.values(), sustained)))

    def _left_out(
        self, sides: Sides, bases: Iterable[Side], sustained: Collection[SeriesKey]
    ) -> Iterator[SkippedSeries]:
        """Yield the records and baselines that were not compared; a baseline beside its records is named with them."""
        other = AS_SHIPPED if not self.as_shipped else WORKED_AROUND
        records = [SkippedSeries(key, other) for key in sides if key.as_shipped is not self.as_shipped]
        records += [SkippedSeries(key, SUSTAINED) for key in sustained if key not in sides]
        yield from records
        named = {side.key for side in bases} | {record.key._replace(as_shipped=False) for record in records}
        here = {key.identity for key in (*sides, *sustained)}
        for key in self.blessed:
            if key not in named:
                yield SkippedSeries(key, NO_RECORD if key.identity in here else OTHER_IDENTITY)


def profiles_of_models(blessed: Sides, folder: Path) -> dict[SeriesKey, NoiseProfile]:
    """Return the noise profiles of the baselines' cases on every handset of their models.

    Raises UsageError for a bad file.
    """
    calibrated = grouped((place.name for place in (folder / PROFILES).glob("*") if place.is_dir()), model_of)
    timed = {(key.case, model_of(key.identity)) for key, side in blessed.items() if side.sessions} if calibrated else ()
    keys = {SeriesKey(key, case) for case, model in timed for key in calibrated.get(model, ())}
    return {key: profile for key in keys if (profile := find_profile(folder, key.identity, key.case))}


def pool_handsets(
    heads: Sides, blessed: Sides, profiles: Mapping[SeriesKey, NoiseProfile], rules: Rules
) -> dict[SeriesKey, Side]:
    """By head's key: the base of another handset, if head's own handset has none and calibration found both equal."""

    def of_models(key: SeriesKey) -> tuple[str, str]:
        return key.case, model_of(key.identity)

    timed = grouped((key for key, side in blessed.items() if side.sessions and key in profiles), of_models)

    def stand_in(head: SeriesKey) -> SeriesKey | None:
        candidates = timed.get(of_models(head), ())
        return next((base for base in candidates if not why_two_series(head, base, profiles, rules)), None)

    without_base = (key for key in heads if key in profiles and key not in blessed)
    return {key: blessed[base] for key in without_base if (base := stand_in(key))}


def why_two_series(key: SeriesKey, other: SeriesKey, profiles: Mapping[SeriesKey, NoiseProfile], rules: Rules) -> str:
    """Return why a case's latencies on two handsets are two series; empty if calibration showed that they are one."""
    mine, theirs = profiles.get(key), profiles.get(other)
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
    return f"a difference of {relative(margin):.1%} between them is not excluded ({signed_share(relative(shift))})"


def blessed_plan(plan: Plan, blessed: Baseline, builder: Builder) -> tuple[Plan, dict[str, Artifact | Answers]]:
    """Return a plan with the build of its baseline in place of this one, and what it needs of the store.

    A baseline of another network is judged by its own right answers. Raises UsageError if anything is not in the store.
    """
    old = builder.artifact(blessed.artifact)
    if old is None:
        raise UsageError(f"the baseline's build {blessed.artifact} is not in this store", hint="bless a build of yours")
    network = plan.oracle.payload.get("network", "")
    another = bool(blessed.network and network and blessed.network != network)
    if another and plan.program:
        raise UsageError(f"{plan.case.model} is another program than the blessed one", hint="bless the new one")
    was = replace(plan, compile=replace(plan.compile, key=old.key), quirks=blessed.quirks)
    if not another:
        return was, {old.key: old}
    truth = replace(plan.oracle, key=blessed.truth, otherwise=None)
    answers = builder.find(truth)
    if not isinstance(answers, Answers):
        raise UsageError(
            f"{plan.case.model} is another network than the blessed one, whose right answers are not in this store",
            hint="bless the new network",
        )
    return replace(was, oracle=truth, range=None), {old.key: old, truth.key: answers}


@dataclass(frozen=True)
class BothBuilds:
    """The present build of a case and that of its baseline, ready to run."""

    plans: Mapping[Arm, Plan]
    built: Built
    blessed: Baseline


@dataclass(frozen=True)
class Remeasure:
    """Runs a case of this gate again, with its present build and that of its baseline."""

    plans: Sequence[Plan]
    baselines: Sequence[Baseline]
    run: Run
    builder: Builder
    cache: Path
    records: RecordFile
    progress: Progress

    def both(self, comparison: Comparison) -> BothBuilds:
        """Return both builds of a case. Raises UsageError if the baseline's is not in the store."""
        plan = next(plan for plan in self.plans if plan.case.id == comparison.key.case)
        base = comparison.base.key if comparison.base else comparison.key
        blessed = next(baseline for baseline in self.baselines if baseline.side.key == base)
        was, old = blessed_plan(plan, blessed, self.builder)
        return BothBuilds({Arm.BASE: was, Arm.HEAD: plan}, {**self.builder.build(plan.jobs), **old}, blessed)

    def measurer(self, comparison: Comparison) -> Measure | str:
        """Return what runs one arm of a case and keeps the record; or why the baseline's arm cannot be run."""
        try:
            both = self.both(comparison)
        except UsageError as error:
            return f"{error.message}, so the two cannot be measured in turns"

        def measure(arm: Arm) -> Record:
            record = run_with_recovery(both.plans[arm], both.built, self.run, self.progress)
            if arm is Arm.BASE:
                compilers = Releases(tvm=both.blessed.tvm, ffi=both.blessed.ffi)
                record = record.model_copy(update={"compiled_with": compilers})
            self.records.append(record)
            self.progress.done(record)
            return record

        return measure
