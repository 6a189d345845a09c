"""Compare answers with the oracle's: is an answer right?

An answer is right when every element lies within `tolerance` of the oracle's, and when the root mean square of all
errors of an output lies within the same share of the root mean square of the oracle's. The first finds one element that
is off, the second many that are off by a little. Both are relative, however small the numbers are, and no finer than
the number format is there: an absolute tolerance would let a softmax over 1000 classes, whose values are about 0.001,
be anything at all. Parts of an output on a smaller scale, the scores beside the boxes of a detector, are held to theirs
(`harness.measure.scales`). Integers have to be equal, but where what they rest on is a tie within rounding.

How much rounding matters depends on the network: a difference of large numbers magnifies it, and so do a hundred
layers. So a tolerance is at least what rounding does to this output (`Truth.rounding`, docs/data/accuracy.md), to this
part of it (`Leeway.moved`), and to the sums of the oracle itself (`Leeway.own`).

A right answer may prove nothing (`vacuity`): the oracle's output is held to its own judgement with three answers that
know nothing of the network. Zeros pass where it is all zero, one number everywhere where it is constant, and the
oracle's answer to other inputs where it does not depend on them. An output is saturated where every element sits at
one of two bounds, as after a softmax that is one-hot or a clip that is stuck: what went on before the bound cannot be
seen. All within the case's own tolerance, because that decides what is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from device_runner.device import Array
from harness.compile.oracle.leeway import SINGLE, SMALLEST, Leeway, peak_and_rms
from harness.measure.facts import Accuracy, Vacuity
from harness.measure.scales import parts_of

MOST_ROUNDING = 0.3
"""Most rounding, relative to an output's scale. Beyond it, right and wrong answers look the same."""


@dataclass(frozen=True)
class Truth:
    """Inputs of a program, the right answer, and how far off another answer may be."""

    inputs: Sequence[Array]
    expected: Sequence[Array]
    relative_tolerance: float
    """Tolerance relative to the right answer's peak, and to its root mean square."""
    leeway: Sequence[Leeway] = ()
    """What rounding may do to each output, and how far each of its numbers may be off besides; empty if not known."""

    other_inputs: Sequence[Array] = ()
    """Other inputs of the same kind; empty if they are not known."""
    other_expected: Sequence[Array] = ()
    """The right answer to those, as far as it is known."""

    @property
    def rounding(self) -> list[float]:
        """What rounding may do to each output, relative to its scale; empty if that is not known."""
        return [output.rounding for output in self.leeway]

    def judge(self, outputs: Sequence[Array]) -> Accuracy:
        """Compare a program's outputs with the right ones."""
        return compare_answers(outputs, self.expected, self.relative_tolerance, self.rounding, self.leeway)


def compare_answers(
    outputs: Sequence[Array],
    oracle: Sequence[Array],
    relative_tolerance: float,
    rounding: Sequence[float] = (),
    leeway: Sequence[Leeway] = (),
) -> Accuracy:
    """Compare outputs with the oracle's, output by output (`Truth`).

    Numbers that are not finite in the oracle's must be equal, such as the infinities of a mask inside a network.
    """
    if len(outputs) != len(oracle):
        return _refuse(f"{len(outputs)} outputs, expected {len(oracle)}")
    tolerances = relative_tolerances(len(oracle), relative_tolerance, rounding)
    allowed = leeway or [Leeway()] * len(oracle)
    accuracies = [
        _Judgement(index, got, want, relative_tolerance, tolerance, own).accuracy
        for index, (got, want, tolerance, own) in enumerate(zip(outputs, oracle, tolerances, allowed, strict=True))
    ]
    if not accuracies:
        return _refuse("the model has no outputs")
    worst = max(accuracies, key=lambda a: (not a.right, _share(a)))
    return Accuracy(
        right=all(a.right for a in accuracies),
        max_abs_err=worst.max_abs_err,
        max_rel_err=max(a.max_rel_err for a in accuracies),
        cosine=min(a.cosine for a in accuracies),
        top1=all(a.top1 for a in accuracies),
        tolerance=worst.tolerance,
        complaint=next((a.complaint for a in accuracies if a.complaint), ""),
        rel_rms_err=max(a.rel_rms_err or 0.0 for a in accuracies),
        ties=sum(a.ties for a in accuracies),
    )


def relative_tolerances(outputs: int, relative_tolerance: float, rounding: Sequence[float]) -> list[float]:
    """Return the tolerance of each output: no less than what rounding does to it, where that is known."""
    finite = (each if math.isfinite(each) else 0.0 for each in rounding or [0.0] * outputs)
    return [max(relative_tolerance, each) for each in finite]


@dataclass(frozen=True)
class _Judgement:
    """One output, held to the oracle's."""

    index: int
    got: Array
    want: Array
    least: float
    """Tolerance relative to the scale of what is judged."""
    relative_tolerance: float
    """The same, with what rounding does to the whole output."""
    leeway: Leeway

    @property
    def accuracy(self) -> Accuracy:
        """How far the output is from the oracle's."""
        got, want, index = self.got, self.want, self.index
        if got.shape != want.shape:
            return _refuse(f"output {index} has shape {got.shape}, expected {want.shape}")
        return self._real if np.issubdtype(want.dtype, np.floating) else self._whole

    @property
    def _real(self) -> Accuracy:
        mine, theirs, leeway = self.got.astype(np.float64), self.want.astype(np.float64), self.leeway
        with np.errstate(invalid="ignore"):  # inf - inf is a wrong answer, not a warning
            error = np.asarray(np.abs(mine - theirs))
        endless = ~np.isfinite(theirs)  # on purpose: a mask. It is right if it is the same
        error[~np.isfinite(error)] = np.inf
        error[endless & ((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))] = 0.0
        finite = np.where(endless, 0.0, theirs)
        own = np.zeros_like(theirs) if leeway.own is None else leeway.own.astype(np.float64)
        peak, rms = peak_and_rms(finite)
        if peak == 0 and leeway.moved is not None:  # all numbers cancel: what is left of others has no scale of its own
            own = own + np.nan_to_num(leeway.moved.astype(np.float64))
        flips, drawn = leeway.flips(self.want), np.zeros_like(theirs)
        drawn = drawn if leeway.decided is None else 2 * leeway.decided.astype(np.float64)
        smallest = min(leeway.smallest, SMALLEST[SINGLE])
        tolerance = max(tolerance_of(self.want, self.relative_tolerance), smallest) + float(own.max(initial=0.0))
        allowed = tolerance + flips
        rms_tolerance = max(self.relative_tolerance * rms, _resolution(self.want), smallest)
        rms_tolerance += peak_and_rms(own)[1] + min(peak_and_rms(drawn)[1], 2 * leeway.spread)
        rms_error = peak_and_rms(error)[1]
        far = ""
        if rms_error > rms_tolerance:
            far = (
                f"output {self.index} is off by {rms_error:.3g} in the root mean square, of {rms:.3g} (tolerance "
                f"{rms_tolerance:.3g}), though each element is within {tolerance:.3g}"
            )
        for part in parts_of(finite, leeway, self.least):
            allowed = np.minimum(allowed, part.tolerance + flips)
            far = far or part.complain(self.index, error, own, drawn)
        beyond = _without_unseen((error > allowed) | np.isinf(error), error - allowed, self.want, leeway, tolerance)
        with np.errstate(over="ignore"):
            share = np.where(beyond, error / np.where(allowed > 0, allowed, np.finfo(float).tiny), 0.0)
        at = int((share if beyond.any() else error).argmax()) if error.size else 0
        worst, limit = (float(error.flat[at]), float(allowed.flat[at])) if error.size else (0.0, tolerance)
        if beyond.any():
            far = self._complain(at, worst, limit, beyond)
        largest = float(error.max(initial=0.0))
        return Accuracy(
            right=not far,
            max_abs_err=worst,
            max_rel_err=largest / peak if peak else largest,
            cosine=_cosine(np.where(error == 0, finite, mine).ravel(), finite.ravel()),
            top1=bool(mine.size == 0 or mine.argmax() == theirs.argmax()),
            tolerance=limit,
            complaint=far,
            rel_rms_err=rms_error / rms if rms else rms_error,
        )

    @property
    def _whole(self) -> Accuracy:
        """Integers: equal, or another right answer where they rest on a tie."""
        mine, theirs = self.got.astype(np.float64), self.want.astype(np.float64)
        differs = self.got != self.want
        error = np.asarray(np.abs(mine - theirs))
        beyond = differs & ~_ties(self.got, self.want, self.leeway)
        beyond = _without_unseen(beyond, error, self.want, self.leeway, 0.0)
        error[beyond & (error == 0)] = 1.0  # large integers may differ and be the same number in floating point
        at = int(np.where(beyond, error, 0.0).argmax()) if error.size else 0
        right = not beyond.any()
        worst = 0.0 if right else float(error.flat[at])
        return Accuracy(
            right=right,
            max_abs_err=worst,
            max_rel_err=worst / peak if (peak := peak_and_rms(theirs)[0]) else worst,
            cosine=_cosine(mine.ravel(), theirs.ravel()),
            top1=bool(mine.size == 0 or mine.argmax() == theirs.argmax()),
            tolerance=0.0,
            complaint="" if right else self._complain(at, worst, 0.0, beyond),
            rel_rms_err=0.0 if right else peak_and_rms(error)[1] / (peak_and_rms(theirs)[1] or 1.0),
            ties=int((differs & ~beyond).sum()),
        )

    def _complain(self, at: int, worst: float, limit: float, beyond: npt.NDArray[np.bool_]) -> str:
        """Say which element is farthest off, and how many are too far if it is not the only one."""
        where = [int(place) for place in np.unravel_index(at, self.want.shape)]
        count = f", {int(beyond.sum())} of {beyond.size} elements beyond" if beyond.sum() > 1 else ""
        got, want = float(self.got.flat[at]), float(self.want.flat[at])
        text = f"output {self.index} is off by {worst:.3g} at {where}: {got:.6g} instead of {want:.6g}"
        return f"{text} (tolerance {limit:.3g}{count})"


def _ties(got: Array, want: Array, leeway: Leeway) -> npt.NDArray[np.bool_]:
    """Return which integers are an answer that a rounding before a decision may give."""
    if leeway.decided is None or leeway.decided.shape[1:] != got.shape:
        return np.zeros(got.shape, np.bool_)
    if leeway.choices:
        return np.asarray((leeway.decided == got).any(axis=0))
    between = (leeway.decided.min(axis=0) <= got) & (got <= leeway.decided.max(axis=0))
    return np.asarray(between | (np.abs(got.astype(np.float64) - want.astype(np.float64)) <= leeway.neighbours(want)))


def _without_unseen(
    beyond: npt.NDArray[np.bool_], error: npt.NDArray[np.float64], want: Array, leeway: Leeway, tolerance: float
) -> npt.NDArray[np.bool_]:
    """Return which elements are too far off, less those few that other decisions than any drawn may have moved."""
    farthest, most = leeway.unseen(want, tolerance)
    few = beyond & (error <= farthest)
    return beyond & ~few if few.sum() <= most else beyond


def tolerance_of(want: Array, relative_tolerance: float) -> float:
    """Return how far a number may be from the oracle's, in its own unit: 0 of integers."""
    if not np.issubdtype(want.dtype, np.floating):
        return 0.0
    return max(relative_tolerance * _peak(want), _resolution(want))


def _peak(want: Array) -> float:
    """Return the largest finite magnitude."""
    wide = np.abs(want.astype(np.float64))
    return float(wide.max(initial=0.0, where=np.isfinite(wide)))


def _resolution(want: Array) -> float:
    """Return the distance of neighbouring numbers at the peak of an output of real numbers."""
    return float(np.spacing(want.dtype.type(_peak(want))))


def _share(accuracy: Accuracy) -> float:
    """Return how much of the tolerance the error takes; of integers, which have none, everything or nothing."""
    if accuracy.tolerance:
        return accuracy.max_abs_err / accuracy.tolerance
    return float("inf") if accuracy.max_abs_err else 0.0


def _cosine(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    if not np.isfinite(a).all():
        return 0.0
    a, b = (array / (float(np.abs(array).max(initial=0.0)) or 1.0) for array in (a, b))  # or squares leave the range
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.dot(a, b)) / norms if norms else float(np.array_equal(a, b))


def _refuse(complaint: str) -> Accuracy:
    return Accuracy(False, math.inf, math.inf, 0.0, False, 0.0, complaint)


USUAL_BOUNDS = (-1.0, 0.0, 1.0)
"""Bounds of a softmax, a sigmoid, a rectifier or tanh. Another number is a bound only if several elements have it."""


def vacuity(
    oracle: Sequence[Array],
    other: Sequence[Array],
    relative_tolerance: float,
    rounding: Sequence[float] = (),
    leeway: Sequence[Leeway] = (),
) -> Vacuity:
    """Return why being right proves nothing, one line for each output of which that is so.

    `other` are the oracle's answers to other inputs; empty if it had none.
    """
    tolerances = relative_tolerances(len(oracle), relative_tolerance, rounding)
    arguments = zip_longest(oracle, other, tolerances)
    reasons = [_reason(*each) if np.isfinite(each[0]).all() else "" for each in arguments]
    for index, each in enumerate(rounding):
        if each > MOST_ROUNDING:
            reasons[index] = f"is lost in rounding, which may move it by {each:.2g} of its scale"
        elif math.isnan(each):
            reasons[index] = "is not finite if its numbers are moved by a rounding: how far it may be off is not known"
    for index, (want, its) in enumerate(zip(oracle, leeway, strict=False)):
        peak, rms = peak_and_rms(want.astype(np.float64)) if want.dtype.kind == "f" else (0.0, 0.0)
        own = 0.0 if its.own is None else float(its.own.max(initial=0.0))
        if own > MOST_ROUNDING * peak > 0:
            reasons[index] = reasons[index] or f"is lost in its judge's sums, off by {own / peak:.2g} of its scale"
        if math.isfinite(its.spread) and 2 * its.spread > MOST_ROUNDING * rms > 0:
            ties = f"is lost in ties, which may move it by {2 * its.spread / rms:.2g} of its scale"
            reasons[index] = reasons[index] or ties
    named = [f"output {index} of {len(oracle)} {reason}" for index, reason in enumerate(reasons) if reason]
    return Vacuity(named, whole=all(reasons))


def _reason(want: Array, other: Array | None, tolerance: float) -> str:
    def passes(answer: Array) -> bool:
        return compare_answers([answer], [want], tolerance).right

    real = want.dtype.kind == "f"
    if want.size == 0:
        return "has no elements"
    if (real and _peak(want) < SMALLEST[SINGLE]) or ((real or want.size > 1) and passes(np.zeros_like(want))):
        return "is all zero"
    middle = want.min() / 2 + want.max() / 2 if real else want.flat[0]
    if want.size > 1 and passes(np.full_like(want, middle)):
        return f"is constant: {middle:.6g} everywhere"
    if real and (bounds := _stuck_at(want, tolerance)):
        every = f"every element is {bounds[0]:.6g} or {bounds[1]:.6g}"
        single = f"its only element, {bounds[0]:.6g}, lies within the tolerance of {round(bounds[0])}"
        return f"is saturated: {single if want.size == 1 else every}"
    if other is not None and passes(other):
        return "does not depend on the input: the answer to another one would be right"
    return ""


def _stuck_at(want: Array, tolerance: float) -> tuple[float, float] | None:
    """Return the two bounds that every element sits at; None if some lie between, or if those are its values."""
    low, high = float(want.min()), float(want.max())
    wide = want.astype(np.float64)
    at_low = wide - low < high - wide
    if not compare_answers([np.where(at_low, low, high)], [want], tolerance).right:
        return None
    alone = [bound for bound, here in ((low, at_low), (high, ~at_low)) if here.sum() == 1]
    near = tolerance_of(want, tolerance)
    usual = (any(abs(bound - usual_bound) <= near for usual_bound in USUAL_BOUNDS) for bound in alone)
    return (low, high) if all(usual) else None
