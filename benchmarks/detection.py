"""A statement of power: what our verdicts detect, how often they cry wolf, how late; and other tools on the same data.

    pip install -e '.[detection]'
    python -m benchmarks.detection [--records FILE] [--quick] [--plot FILE.png]

Prints Markdown; docs/power.md holds what it printed. Every number is a share of trials made with fixed seeds, with the
95 % Wilson interval in brackets where it decides a goal. `--records` adds series of at least eight sessions of one
artifact from a records file, in which steps are injected by scaling head's samples.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks.detection_rigs import RIGS, Recorded, Rig
from benchmarks.detection_rules import HISTORY_RULES, PAIR_RULES, Look, Score, Trial, ours_confirmed
from harness.judge.stats import hold
from harness.judge.stats.noise import between
from harness.judge.stats.pair import Change
from harness.judge.stats.session import summarise

SESSIONS = 4
CALIBRATION = 16
STEPS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
GOAL_STEP = 0.05
SUITE = 100
BEFORE, AFTER = 45, 12
"""Commits of a history before its step, and after."""

RigMaker = Callable[[np.random.Generator], Rig]


@dataclass(frozen=True)
class Size:
    """How many trials of a rig without a change, at each step, and of whole suites and histories."""

    null: int
    step: int
    suites: int
    histories: int


FULL, QUICK = Size(null=800, step=100, suites=100, histories=60), Size(null=100, step=20, suites=10, histories=10)


@dataclass(frozen=True)
class PairStudy:
    """Scores of all trials of one rig: by rule, and by rule and step."""

    null: dict[str, list[Score]]
    stepped: dict[str, dict[float, list[Score]]]


def main() -> None:
    """Print the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=Path, help="records file with A/A sessions")
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials, to see that it runs")
    parser.add_argument("--plot", type=Path, help="write the ROC-like plot here")
    options = parser.parse_args()
    size, began = QUICK if options.quick else FULL, time.monotonic()
    rigs = {**RIGS, **(recorded(options.records) if options.records else {})}
    studies = {name: study_pairs(rig, size, number) for number, (name, rig) in enumerate(rigs.items())}
    print_goals(studies["gaussian"], size)
    for name, study in studies.items():
        print_pairs(name, study)
    for number, name in enumerate(RIGS):
        print_histories(name, RIGS[name], size, number)
    if options.plot:
        plot(studies, options.plot)
    print(f"\n{size.null} A/A trials and {size.step} per step and rig, in {time.monotonic() - began:.0f} s.")


def study_pairs(rig: RigMaker, size: Size, seed: int) -> PairStudy:
    """Score every rule on the same trials."""
    generator = np.random.default_rng([seed, 1])
    null = _scores([a_trial(rig, generator, 0.0) for _ in range(size.null)])
    by_step = {step: _scores([a_trial(rig, generator, step) for _ in range(size.step)]) for step in STEPS}
    return PairStudy(null, {rule: {step: by_step[step][rule] for step in STEPS} for rule in PAIR_RULES})


def a_trial(make: RigMaker, generator: np.random.Generator, step: float) -> Trial:
    """One comparison on a rig of its own: calibration, then base, then head."""
    rig = make(generator)
    calibration, _ = summarise([rig.session() for _ in range(CALIBRATION)])
    base = [rig.session() for _ in range(SESSIONS)]
    return Trial(base, [rig.session(step) for _ in range(SESSIONS)], rig, step, between(calibration))


def _scores(trials: Sequence[Trial]) -> dict[str, list[Score]]:
    return {name: [rule(trial) for trial in trials] for name, rule in PAIR_RULES.items()}


def print_goals(study: PairStudy, size: Size) -> None:
    """The goals, on Gaussian noise: detection, false alarms per series, and over a suite."""
    print(f"\n## Goals: CV 2 %, session bias 1 %, 10 samples x {SESSIONS} sessions a side\n")
    rows = []
    for name in PAIR_RULES:
        false = [score.alarm for score in study.null[name]]
        seen = [score.alarm for score in study.stepped[name][GOAL_STEP]]
        rows.append([name, share(seen), share(false)])
    print(table(["rule, as shipped", "5 % step detected", "false alarms per series"], rows))
    print()
    headers = ["suite of 100 series", "false alarms per series", "any alarm, no change", "one 5 % step found"]
    print(table(headers, study_suites(size)))


def study_suites(size: Size) -> list[list[str]]:
    """How often a suite without a change raises an alarm, and how often one with a single step finds it."""
    generator = np.random.default_rng(2)
    alarms: dict[str, list[bool]] = defaultdict(list)
    kept: dict[str, list[bool]] = defaultdict(list)
    found: dict[str, list[bool]] = defaultdict(list)
    for _ in range(size.suites):
        trials = [a_trial(RIGS["gaussian"], generator, 0.0) for _ in range(SUITE)]
        stepped = a_trial(RIGS["gaussian"], generator, GOAL_STEP)
        for name, change_of in CHANGES.items():
            changes = [change_of(trial) for trial in trials]
            alarms[name] += [change.verdict.changed for change in changes]
            kept[name].append(any(change.verdict.changed for change in hold(changes)))
            found[name].append(hold([change_of(stepped), *changes[1:]])[0].verdict.changed)
        confirmed = [ours_confirmed(trial).alarm for trial in trials]
        alarms[CONFIRMED] += confirmed
        kept[CONFIRMED].append(any(confirmed))
        found[CONFIRMED].append(ours_confirmed(stepped).alarm)
    return [[name, share(alarms[name]), share(kept[name]), share(found[name])] for name in alarms]


CONFIRMED = "screened and confirmed (slower only)"
CHANGES: dict[str, Callable[[Trial], Change]] = {
    "`compare`, then `hold`, uncalibrated": lambda trial: trial.uncalibrated,
    "`compare`, then `hold`, calibrated": lambda trial: trial.calibrated,
}


def print_pairs(name: str, study: PairStudy) -> None:
    """Detection by step as shipped, and with every rule's bar so high that no trial without a change passes it."""
    print(f"\n## Pairs: {name}\n")
    rows = []
    for rule, null in study.null.items():
        bar = max(score.value for score in null)
        stepped = study.stepped[rule]
        cost = [score.sessions for score in null]
        rows.append([
            rule,
            percent([score.alarm for score in null]),
            *(percent([score.alarm for score in stepped[step]]) for step in STEPS),
            percent([score.value > bar for score in stepped[0.03]]),
            percent([score.value > bar for score in stepped[GOAL_STEP]]),
            f"{np.mean(cost):.1f}" if any(cost) else "",
        ])  # fmt: skip
    steps = [f"{step:.1%}" for step in STEPS]
    print(
        table(
            ["rule", "false alarms", *steps, "3 % at no false alarm", "5 % at no false alarm", "extra sessions"], rows
        )
    )


def print_histories(name: str, rig: RigMaker, size: Size, seed: int) -> None:
    """One session a commit; every rule looks at the series after each commit from the step on."""
    still, stepped = (study_histories(rig, size, [seed, 3], step) for step in (0.0, GOAL_STEP))
    rows = []
    for rule in still:
        bar = float(still[rule].max())
        late, equal = delays(stepped[rule], 0.0), delays(stepped[rule], bar)
        rows.append([
            rule, percent(still[rule].max(axis=1) > 0), percent(np.isfinite(late)), _middle(late),
            percent(np.isfinite(equal)), _middle(equal),
        ])  # fmt: skip
    print(f"\n## History: {name}\n")
    at = "at no false alarm"
    print(table(["rule", "false alarms", "5 % found", "median delay", f"5 % found {at}", f"median delay {at}"], rows))


def study_histories(rig: RigMaker, size: Size, seed: Sequence[int], step: float) -> dict[str, np.ndarray]:
    """The largest slowdown that each rule reports: a row a series, a column a look."""
    generator, result = np.random.default_rng(seed), defaultdict(list)
    for _ in range(size.histories):
        device = rig(generator)
        series = [device.session(step if commit >= BEFORE else 0.0) for commit in range(BEFORE + AFTER)]
        for name, rule in HISTORY_RULES.items():
            result[name].append([rule(Look(series[: BEFORE + seen], device, step)) for seen in range(1, AFTER + 1)])
    reported = {name: np.asarray(rows) for name, rows in result.items()}
    return {"ours, both": np.maximum(reported["ours, gate"], reported["ours, history"]), **reported}


def delays(reported: np.ndarray, bar: float) -> np.ndarray:
    """Commits until a slowdown above the bar is reported, 1 at the step's own commit; infinite if never."""
    seen = reported > bar
    return np.where(seen.any(axis=1), seen.argmax(axis=1) + 1.0, math.inf)


def recorded(path: Path) -> dict[str, RigMaker]:
    """Series of one artifact with at least eight sessions from a records file."""
    from harness.run.record import RecordFile, resume_key

    series = defaultdict(list)
    for record in RecordFile(path).load().records:
        if record.wall_ms:
            series[record.case, resume_key(record)].append(record.wall_ms)
    return {
        f"recorded {case}, {len(sessions)} sessions": partial(Recorded, sessions)
        for (case, _), sessions in series.items()
        if len(sessions) >= 2 * SESSIONS
    }


def plot(studies: dict[str, PairStudy], path: Path) -> None:
    """Detection of a 3 % step against the false-alarm rate, a panel a rig; dots mark the rules as shipped."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = 4
    lines = math.ceil(len(studies) / columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(4 * columns, 3.6 * lines), sharey=True, squeeze=False)
    for panel in axes.flat[len(studies) :]:
        panel.set_axis_off()
    for panel, (name, study) in zip(axes.flat, studies.items(), strict=False):
        for colour, (rule, null) in enumerate(study.null.items()):
            stepped = study.stepped[rule][0.03]
            bars = sorted({score.value for score in (*null, *stepped) if score.value > -math.inf} | {math.inf})
            rates = [[np.mean([score.value >= bar for score in scores]) for bar in bars] for scores in (null, stepped)]
            panel.plot(*rates, color=f"C{colour}", label=rule, linewidth=1.2)
            shipped = [np.mean([score.alarm for score in scores]) for scores in (null, stepped)]
            panel.plot(*shipped, "o", color=f"C{colour}")
        panel.set(title=name.replace(", ", "\n"), xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="false alarms")
        panel.set_xscale("symlog", linthresh=0.001)
    axes[0][0].set_ylabel("3 % step detected")
    axes[0][0].legend(fontsize=6, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def share(hits: Sequence[bool]) -> str:
    """A share with its 95 % Wilson interval."""
    from scipy.stats import binomtest

    interval = binomtest(int(np.sum(hits)), len(hits)).proportion_ci(method="wilson")
    return f"{np.mean(hits):.2%} [{interval.low:.2%}, {interval.high:.2%}]"


def percent(hits: Sequence[bool] | np.ndarray) -> str:
    """A share."""
    return f"{np.mean(hits):.1%}"


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown."""
    return tabulate([[f"{v:.1%}" if isinstance(v, float) else v for v in row] for row in rows], headers, "github")


def _middle(late: np.ndarray) -> str:
    middle = float(np.median(late))
    return f"{middle:.0f}" if math.isfinite(middle) else "never"


if __name__ == "__main__":
    main()
