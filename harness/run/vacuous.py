"""What a right answer is worth: would an answer that knows nothing of the network have been right, too?

The oracle's output is held to its own judgement with three such answers. Zeros pass where it is all zero, one number
everywhere where it is constant, and the oracle's answer to other inputs where it does not depend on them. An output is
saturated where every element sits at one of two bounds, as after a softmax that is one-hot or a clip that is stuck:
what went on before the bound cannot be seen. All within the case's own tolerance, because that decides what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from harness.run.correctness import compare_answers

if TYPE_CHECKING:
    from device_runner.device import Array

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
