"""The oracle's judgement: is an answer right?

Outputs are compared with those of the `cpu` path (LLVM) on the same inputs. An answer is right when every element lies
within `tolerance` of the oracle's, and the whole output points the same way. The tolerance is relative to the oracle's
peak, however small that is, and no finer than the number format is there: an absolute one would let a softmax over 1000
classes, whose values are about 0.001, be anything at all. Integers have to be equal.

A right answer may prove nothing (`vacuous`): the oracle's output is held to its own judgement with three answers that
know nothing of the network. Zeros pass where it is all zero, one number everywhere where it is constant, and the
oracle's answer to other inputs where it does not depend on them. An output is saturated where every element sits at
one of two bounds, as after a softmax that is one-hot or a clip that is stuck: what went on before the bound cannot be
seen. All within the case's own tolerance, because that decides what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from device_runner.device import Array

LEAST_COSINE = 0.99
"""Of a right output with the oracle's. An output with one huge element may be another answer altogether although each
element lies within a tolerance that follows the peak."""


@dataclass(frozen=True)
class Truth:
    """What a program is run on, the right answer to that, and how far off another may be."""

    inputs: Sequence[Array]
    expected: Sequence[Array]
    relative_tolerance: float
    """Of the peak of the right answer."""


@dataclass(frozen=True)
class Accuracy:
    """How far an answer is from the oracle's, over all outputs."""

    right: bool
    max_abs_err: float
    max_rel_err: float
    """Largest error over the oracle's peak of the same output."""
    cosine: float
    """Smallest cosine similarity of an output with the oracle's."""
    top1: bool
    """Whether the largest element of every output is the oracle's. Of a right output it may be another one only where
    the oracle's two lie within twice the tolerance of each other: a tie, as far as can be told."""
    tolerance: float
    """The largest `max_abs_err` that would have been right, at the output that decided."""
    complaint: str = ""
    """One line: what is wrong, and at which output and index. Empty if right."""


def compare_answers(outputs: Sequence[Array], oracle: Sequence[Array], relative_tolerance: float) -> Accuracy:
    """Compare outputs with the oracle's, output by output. Raises ValueError if the oracle itself is not finite."""
    if len(outputs) != len(oracle):
        return _refuse(f"{len(outputs)} outputs, expected {len(oracle)}")
    judged = [
        _judge_one(index, got, want, relative_tolerance)
        for index, (got, want) in enumerate(zip(outputs, oracle, strict=True))
    ]
    if not judged:
        return _refuse("the model has no outputs")
    worst = max(judged, key=lambda a: (not a.right, _share(a)))
    return Accuracy(
        right=all(a.right for a in judged),
        max_abs_err=worst.max_abs_err,
        max_rel_err=max(a.max_rel_err for a in judged),
        cosine=min(a.cosine for a in judged),
        top1=all(a.top1 for a in judged),
        tolerance=worst.tolerance,
        complaint=next((a.complaint for a in judged if a.complaint), ""),
    )


def _judge_one(index: int, got: Array, want: Array, relative_tolerance: float) -> Accuracy:
    import numpy as np

    if got.shape != want.shape:
        return _refuse(f"output {index} has shape {got.shape}, expected {want.shape}")
    exact = not np.issubdtype(want.dtype, np.floating)
    mine, theirs = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    if not np.isfinite(theirs).all():
        raise ValueError(f"output {index} of the oracle is not finite: this model cannot be judged with these inputs")
    peak = float(np.abs(theirs).max(initial=0.0))
    tolerance = tolerance_of(want, relative_tolerance)
    with np.errstate(invalid="ignore"):  # inf - inf is a wrong answer, not a warning
        error = np.abs(mine - theirs)
    error[~np.isfinite(error)] = np.inf
    if exact:  # large integers may differ and be the same number in floating point
        error[(got != want).ravel() & (error == 0)] = 1.0
    at = int(error.argmax()) if error.size else 0
    worst = float(error[at]) if error.size else 0.0
    cosine = _cosine(mine, theirs)
    close = worst <= tolerance
    alike = exact or peak == 0.0 or cosine >= LEAST_COSINE
    return Accuracy(
        right=close and alike,
        max_abs_err=worst,
        max_rel_err=worst / peak if peak else worst,
        cosine=cosine,
        top1=bool(mine.size == 0 or mine.argmax() == theirs.argmax()),
        tolerance=tolerance,
        complaint=f"output {index} is off by {worst:.3g} at {_where(at, want.shape)}: "
        f"{mine[at]:.6g} instead of {theirs[at]:.6g} (tolerance {tolerance:.3g})"
        if not close
        else ""
        if alike
        else f"output {index} is another answer, though each element is within the tolerance of {tolerance:.3g}: its "
        f"cosine similarity with the oracle's is {cosine:.3g}, less than {LEAST_COSINE}",
    )


def tolerance_of(want: Array, relative_tolerance: float) -> float:
    """How far a number may be from the oracle's, in its own unit: 0 of integers."""
    import numpy as np

    if not np.issubdtype(want.dtype, np.floating):
        return 0.0
    peak = float(np.abs(want.astype(np.float64)).max(initial=0.0))
    return max(relative_tolerance * peak, float(np.spacing(want.dtype.type(peak))))


def _share(accuracy: Accuracy) -> float:
    """How much of the tolerance the error takes; of integers, which have none, everything or nothing."""
    if accuracy.tolerance:
        return accuracy.max_abs_err / accuracy.tolerance
    return float("inf") if accuracy.max_abs_err else 0.0


def _where(flat: int, shape: tuple[int, ...]) -> str:
    import numpy as np

    return str([int(i) for i in np.unravel_index(flat, shape)]) if shape else "[]"


def _cosine(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    import numpy as np

    if not np.isfinite(a).all():
        return 0.0
    a, b = (array / (float(np.abs(array).max(initial=0.0)) or 1.0) for array in (a, b))  # or squares leave the range
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    if norms == 0.0:
        return float(np.array_equal(a, b))
    return float(np.dot(a, b)) / norms


def _refuse(complaint: str) -> Accuracy:
    infinite = float("inf")
    return Accuracy(False, infinite, infinite, 0.0, False, 0.0, complaint)


USUAL_BOUNDS = (-1.0, 0.0, 1.0)
"""Of a softmax, a sigmoid, a rectifier or tanh. Any other number is a bound only if several elements sit at it."""


def vacuous(oracle: Sequence[Array], other: Sequence[Array], relative_tolerance: float) -> list[str]:
    """Why being right proves nothing, one line for each output of which that is so.

    `other` are the oracle's answers to other inputs, none if it had no answer. Raises ValueError if `oracle` is not
    finite.
    """
    reasons = [_reason(want, elsewhere, relative_tolerance) for want, elsewhere in zip_longest(oracle, other)]
    return [f"output {index} of {len(oracle)} {reason}" for index, reason in enumerate(reasons) if reason]


def _reason(want: Array, elsewhere: Array | None, tolerance: float) -> str:
    import numpy as np

    def passes(answer: Array) -> bool:
        return compare_answers([answer], [want], tolerance).right

    real = want.dtype.kind == "f"
    if want.size == 0:
        return "has no elements"
    if (real or want.size > 1) and passes(np.zeros_like(want)):
        return "is all zero"
    middle = want.min() / 2 + want.max() / 2 if real else want.flat[0]
    if want.size > 1 and passes(np.full_like(want, middle)):
        return f"is constant: {middle:.6g} everywhere"
    if real and (bounds := _stuck_at(want, tolerance)):
        return f"is saturated: every element is {bounds[0]:.6g} or {bounds[1]:.6g}"
    if elsewhere is not None and passes(elsewhere):
        return "does not depend on the input: the answer to another one would be right"
    return ""


def _stuck_at(want: Array, tolerance: float) -> tuple[float, float] | None:
    """The two bounds that every element sits at; None if there is something between, or if those are its values."""
    import numpy as np

    low, high = float(want.min()), float(want.max())
    wide = want.astype(np.float64)
    at_low = wide - low < high - wide
    if not compare_answers([np.where(at_low, low, high)], [want], tolerance).right:
        return None
    alone = [bound for bound, here in ((low, at_low), (high, ~at_low)) if here.sum() == 1]
    usual = (any(abs(bound - known) <= tolerance for known in USUAL_BOUNDS) for bound in alone)
    return (low, high) if all(usual) else None
