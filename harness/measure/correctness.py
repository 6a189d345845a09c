"""The oracle's judgement: is an answer right?

An answer is right when every element lies within `tolerance` of the oracle's, and when the root mean square of all
errors of an output lies within the same share of the root mean square of the oracle's. The first finds one element that
is off, the second many that are off by a little. Both are relative, however small the numbers are, and no finer than
the number format is there: an absolute tolerance would let a softmax over 1000 classes, whose values are about 0.001,
be anything at all. Integers have to be equal.

How much rounding matters depends on the network: a difference of large numbers magnifies it, and so do a hundred
layers. So a tolerance is at least what rounding does to this output (`Truth.rounding`, docs/data/accuracy.md).

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

from harness.compile.oracle.distance import peak_and_rms
from harness.measure.facts import Accuracy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from device_runner.device import Array

MOST_ROUNDING = 0.3
"""Most rounding, relative to an output's scale. Beyond it, nobody can tell a right answer from a wrong one."""


@dataclass(frozen=True)
class Truth:
    """What a program is run on, the right answer to that, and how far off another may be."""

    inputs: Sequence[Array]
    expected: Sequence[Array]
    relative_tolerance: float
    """Tolerance relative to the right answer's peak, and to its root mean square."""
    rounding: Sequence[float] = ()
    """What rounding may do to each output, in the same unit; empty if that is not known."""


def compare_answers(
    outputs: Sequence[Array], oracle: Sequence[Array], relative_tolerance: float, rounding: Sequence[float] = ()
) -> Accuracy:
    """Compare outputs with the oracle's, output by output (`Truth`).

    Raises ValueError if the oracle itself is not finite.
    """
    if len(outputs) != len(oracle):
        return _refuse(f"{len(outputs)} outputs, expected {len(oracle)}")
    tolerances = relative_tolerances(len(oracle), relative_tolerance, rounding)
    judged = [_judge_one(*one) for one in zip(range(len(oracle)), outputs, oracle, tolerances, strict=True)]
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
        rel_rms_err=max(a.rel_rms_err or 0.0 for a in judged),
    )


def relative_tolerances(outputs: int, relative_tolerance: float, rounding: Sequence[float]) -> list[float]:
    """Return the tolerance of each output: no less than what rounding does to it."""
    return [max(relative_tolerance, each) for each in rounding or [0.0] * outputs]


def _judge_one(index: int, got: Array, want: Array, relative_tolerance: float) -> Accuracy:
    import numpy as np

    if got.shape != want.shape:
        return _refuse(f"output {index} has shape {got.shape}, expected {want.shape}")
    exact = not np.issubdtype(want.dtype, np.floating)
    mine, theirs = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    if not np.isfinite(theirs).all():
        raise ValueError(f"output {index} of the oracle is not finite: this model cannot be judged with these inputs")
    tolerance = tolerance_of(want, relative_tolerance)
    with np.errstate(invalid="ignore"):  # inf - inf is a wrong answer, not a warning
        error = np.abs(mine - theirs)
    error[~np.isfinite(error)] = np.inf
    if exact:  # large integers may differ and be the same number in floating point
        error[(got != want).ravel() & (error == 0)] = 1.0
    at = int(error.argmax()) if error.size else 0
    worst = float(error[at]) if error.size else 0.0
    peak, rms = peak_and_rms(theirs)
    rms_error = peak_and_rms(error)[1]
    rms_tolerance = max(relative_tolerance * rms, _resolution(want))
    close, steady = worst <= tolerance, exact or rms_error <= rms_tolerance
    far = (
        f"output {index} is off by {worst:.3g} at {_where(at, want.shape)}: "
        f"{mine[at]:.6g} instead of {theirs[at]:.6g} (tolerance {tolerance:.3g})"
        if not close
        else f"output {index} is off by {rms_error:.3g} in the root mean square, of {rms:.3g} (tolerance "
        f"{rms_tolerance:.3g}), though each element is within {tolerance:.3g}"
    )
    return Accuracy(
        right=close and steady,
        max_abs_err=worst,
        max_rel_err=worst / peak if peak else worst,
        cosine=_cosine(mine, theirs),
        top1=bool(mine.size == 0 or mine.argmax() == theirs.argmax()),
        tolerance=tolerance,
        complaint="" if close and steady else far,
        rel_rms_err=rms_error / rms if rms else rms_error,
    )


def tolerance_of(want: Array, relative_tolerance: float) -> float:
    """Return how far a number may be from the oracle's, in its own unit: 0 of integers."""
    import numpy as np

    if not np.issubdtype(want.dtype, np.floating):
        return 0.0
    return max(relative_tolerance * float(np.abs(want.astype(np.float64)).max(initial=0.0)), _resolution(want))


def _resolution(want: Array) -> float:
    """Return the distance of neighbouring numbers at an output's peak; 0 of integers."""
    import numpy as np

    if not np.issubdtype(want.dtype, np.floating):
        return 0.0
    return float(np.spacing(np.abs(want).max(initial=want.dtype.type(0))))


def _share(accuracy: Accuracy) -> float:
    """Return how much of the tolerance the error takes; of integers, which have none, everything or nothing."""
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
"""Bounds of a softmax, a sigmoid, a rectifier or tanh. Another number is a bound only if several elements have it."""


def vacuous(
    oracle: Sequence[Array], other: Sequence[Array], relative_tolerance: float, rounding: Sequence[float] = ()
) -> list[str]:
    """Return why being right proves nothing, one line for each output of which that is so.

    `other` are the oracle's answers to other inputs, none if it had no answer. Raises ValueError if `oracle` is not
    finite.
    """
    tolerances = relative_tolerances(len(oracle), relative_tolerance, rounding)
    reasons = [_reason(*one) for one in zip_longest(oracle, other, tolerances)]
    for index, each in enumerate(rounding):
        if each > MOST_ROUNDING:
            reasons[index] = f"is lost in rounding, which may move it by {each:.2g} of its scale"
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
    """Return the two bounds that every element sits at.

    None if there is something between, or if those are its values.
    """
    import numpy as np

    low, high = float(want.min()), float(want.max())
    wide = want.astype(np.float64)
    at_low = wide - low < high - wide
    if not compare_answers([np.where(at_low, low, high)], [want], tolerance).right:
        return None
    alone = [bound for bound, here in ((low, at_low), (high, ~at_low)) if here.sum() == 1]
    usual = (any(abs(bound - known) <= tolerance for known in USUAL_BOUNDS) for bound in alone)
    return (low, high) if all(usual) else None
