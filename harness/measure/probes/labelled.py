"""How often the answer's class is the right one, on labelled data, and whether that is less than chance explains.

The oracle's share of right classes is known from so many inputs only. Its one-sided 99 % binomial interval (Clopper and
Pearson, Biometrika 26, 1934) says how low the share of a network that is as good may look; a path below it has lost
right answers. Where both classify the same inputs this is cautious: rounding moves the same few inputs in all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from harness.compile.models.input_files import BEST, best_classes
from harness.measure.facts import CONFIDENCE, TopOne

if TYPE_CHECKING:
    from device_runner.device import Array, Program


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


def classify(program: Program, labelled: list[Array], batch: int, timeout_s: float) -> TopOne:
    """Ask a program about labelled data (`artifacts.artifact.LABELLED`), `batch` at once. Raises what it raises."""
    inputs, labels, oracle = labelled
    return top_one(
        best_classes(lambda rows: program.run([rows], timeout_s=timeout_s)[0], inputs, batch), labels, oracle
    )
