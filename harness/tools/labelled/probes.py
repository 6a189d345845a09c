"""What a path makes of labelled data, held to what the oracle makes of them: right classes, or a person's own score.

The oracle's share of right classes is known from so many inputs only. Its one-sided 99 % binomial interval (Clopper and
Pearson, Biometrika 26, 1934) says how low the share of a network that is as good may look; a path below it has lost
right answers. Where both classify the same inputs this is cautious: rounding moves the same few inputs in all.

A path may lose a hundredth of the oracle's score, as a detector may in MLPerf Inference: its table of benchmarks asks
for 99 % of the mAP in float32 (mlcommons/inference_policies, inference_rules.adoc, version 0.5).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from device_runner.device import Array, Program, Session
from harness.base.failures import ModelError
from harness.compile.artifacts.artifact import LABELLED, load_arrays
from harness.measure.context import Run
from harness.measure.facts import Facts
from harness.measure.probes.base import Step
from harness.measure.work import Preparation, Work
from harness.tools.labelled.data import BEST, best_classes
from harness.tools.labelled.part import CONFIDENCE, Score, TopOne
from harness.tools.labelled.score import SCORE, SCORED, outputs_of, score_of

LOSS = 0.01
"""Share of the oracle's score that a path may lose."""
QUICK_INPUTS = 60
"""Number of labelled inputs in a quick look; a whole batch if that is larger."""


def least_right(oracle_right: int, inputs: int) -> int:
    """Return the fewest right ones that lie in the interval of the oracle's share.

    Clopper and Pearson's, as `scipy.stats.binomtest`, to import which takes a second.
    """
    from scipy.special import betaincinv

    low = float(betaincinv(oracle_right, inputs - oracle_right + 1, 1 - CONFIDENCE)) if oracle_right else 0.0
    return math.ceil(low * inputs)


def top_one(classes: Array, labels: Array, oracle: Array) -> TopOne:
    """Compare a path's classes, the best of each input first, with the labels and with those of the oracle."""
    oracle = oracle.reshape(len(labels), -1)  # which an earlier bundle has the first class of alone
    inputs, firsts = len(labels), [best[:, 0] for best in (classes, oracle)]
    right, oracle_right = (int((first == labels).sum()) for first in firsts)
    among = [int((best == labels[:, None]).any(axis=1).sum()) for best in (classes, oracle)]
    return TopOne(
        inputs=inputs,
        right=right,
        oracle_right=oracle_right,
        alike=int((firsts[0] == firsts[1]).sum()),
        least=least_right(oracle_right, inputs),
        top_five=among[0] if classes.shape[1] == BEST else None,
        oracle_top_five=among[1] if oracle.shape[1] == BEST else None,
    )


def _asking(program: Program, timeout_s: float) -> Callable[[Array], Sequence[Array]]:
    """Return what runs a program on one batch of inputs."""
    return lambda rows: program.run([rows], timeout_s=timeout_s)[0]


@dataclass(frozen=True)
class LabelledProbe:
    """Classifies labelled inputs."""

    work: Work
    step = ""
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Run all labelled inputs; for a quick look the first ones."""
        budget, batch = self.work.plan.budget, len(self.work.truth.inputs[0])
        count = batch * max(1, QUICK_INPUTS // batch) if budget.quick else None
        inputs, labels, oracle = (rows[:count] for rows in load_arrays(self.work.answers.folder / LABELLED))
        yield top_one(best_classes(_asking(program, budget.timeout_s), inputs, batch), labels, oracle)


@dataclass(frozen=True)
class ScoreProbe:
    """Has a person's function score the outputs for labelled inputs: for all of them, as it does the oracle's."""

    work: Work
    step = ""
    timed = False

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[Score]:
        """Run all labelled inputs. Raises ModelError for what the function does wrong."""
        folder, plan = self.work.answers.folder, self.work.plan
        place: str = plan.oracle.payload["score"]
        expected, oracle = json.loads((folder / SCORE).read_text(encoding="utf-8"))
        inputs, labels = load_arrays(folder / SCORED)
        outputs = outputs_of(_asking(program, plan.budget.timeout_s), inputs, len(self.work.truth.inputs[0]))
        name, value = score_of(place, outputs, labels)
        if name != expected:
            raise ModelError(f"{place} returned {name!r}, and {expected!r} for the oracle", hint="return one name")
        yield Score(name, value, oracle, len(inputs), oracle - LOSS * abs(oracle))


def make_probe(work: Work, prepared: Preparation, run: Run, step: Step) -> LabelledProbe | ScoreProbe | None:
    """Return what asks a program about labelled data; None of a case without, and of a quick look without a score."""
    if (work.answers.folder / LABELLED).exists():
        return LabelledProbe(work)
    return ScoreProbe(work) if (work.answers.folder / SCORED).exists() and not work.plan.budget.quick else None
