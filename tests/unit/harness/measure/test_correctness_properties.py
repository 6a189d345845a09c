"""No answer that a person would call wrong is ever right: looked for over networks that nobody chose.

A network is a few operators with weights of any size. Its oracle is judged by the product against answers that went
wrong somewhere, and against a second opinion that shares no code with the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.measure.correctness import compare_answers

Array = np.ndarray
Wide = np.longdouble
"""Wide enough that the square of no `float64` leaves its range."""
Layer = tuple[str, float]
"""An operator, and the power of ten that its weights are scaled by."""


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max())
    return np.asarray(powers / powers.sum())


OPERATORS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "dense": lambda x, weights, bias: x @ weights + bias,
    "scale": lambda x, weights, bias: x * weights[0, 0],
    "add": lambda x, weights, bias: x + bias,
    "relu": lambda x, weights, bias: np.maximum(x, 0),
    "tanh": lambda x, weights, bias: np.tanh(x),
    "softmax": lambda x, weights, bias: _softmax(x),
    "square": lambda x, weights, bias: x * x,
}


def network(layers: Sequence[Layer], seed: int, width: int, dtype: type, broken: int | None = None) -> Array:
    """What the network answers; one of its layers may have other weights than it should."""
    chance = np.random.default_rng(seed)
    x: Array = chance.standard_normal(width).astype(dtype)
    for place, (operator, power) in enumerate(layers):
        weights, bias = chance.standard_normal((width, width)), chance.standard_normal(width)
        if place == broken:
            weights, bias = weights.T, bias[::-1]
        scale = 10.0**power
        x = OPERATORS[operator](x, (weights * scale).astype(dtype), (bias * scale).astype(dtype)).astype(dtype)
    return x


def answers(oracle: Array, seed: int, error: float) -> dict[str, Array]:
    """What may come of an oracle's answer on the way."""
    chance = np.random.default_rng(seed + 1)
    peak = float(np.abs(oracle.astype(np.float64)).max())
    swapped = oracle.copy()
    first, second = np.argsort(oracle)[-2:]
    swapped[[first, second]] = swapped[[second, first]]
    one = oracle.astype(np.float64)
    one[chance.integers(one.size)] += error * peak
    return {
        "noise": oracle + error * peak * chance.uniform(-1, 1, oracle.shape),
        "one element": one,
        "swapped": swapped,
        "permuted": chance.permutation(oracle),
        "shifted": np.roll(oracle, 1),
        "reversed": oracle[::-1],
        "scaled": oracle.astype(np.float64) * (1 + error),
        "negative": -oracle,
        "zeros": np.zeros_like(oracle),
        "constant": np.full_like(oracle, oracle.astype(np.float64).mean()),
        "half": oracle.astype(np.float16),
        "none": np.full_like(oracle, np.nan),
    }


def complaint(answer: Array, oracle: Array, relative: float) -> str:
    """The second opinion: why nobody would call this answer right; empty if one may."""
    if not np.isfinite(answer).all():
        return "not finite"
    peak = Wide(np.abs(oracle).max())
    mine, theirs = (array.astype(Wide) / (peak or 1) for array in (answer, oracle))
    length = math.sqrt(mine @ mine) * math.sqrt(theirs @ theirs)
    if not length:
        return "one is all zero" if mine.any() or theirs.any() else ""
    share = max(relative, float(np.spacing(oracle.dtype.type(peak)) / peak) * math.sqrt(mine.size))
    if share < 1 and mine @ theirs / length < math.sqrt(1 - share**2) - 1e-9:
        return "another direction"
    # What both largest elements may be off by: the tolerance, or the last digit of the number format.
    explained = 2 * max(relative, float(np.spacing(oracle.dtype.type(peak)) / peak))
    return "another class" if theirs.max() - theirs[mine.argmax()] > explained * (1 + 1e-9) else ""


LAYERS = st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.floats(-12, 12)), min_size=1, max_size=5)
SEEDS = st.integers(0, 2**32 - 1)
FORMATS = st.sampled_from([np.float16, np.float32, np.float64])


@given(LAYERS, SEEDS, st.integers(2, 12), FORMATS, st.floats(-8, 1), st.sampled_from([1.2e-7, 1e-3, 2e-2, 0.5]))
def test_an_ok_never_has_a_low_cosine_or_another_class(
    layers: list[Layer], seed: int, width: int, dtype: type, error: float, relative: float
) -> None:
    with np.errstate(all="ignore"):
        oracle = network(layers, seed, width, dtype)
        assume(np.isfinite(oracle).all())
        found = answers(oracle, seed, 10.0**error)
        found["other weights"] = network(layers, seed, width, dtype, broken=seed % len(layers))
        found["other input"] = network(layers, seed + 1, width, dtype)
        for what, answer in found.items():
            if compare_answers([answer], [oracle], relative).right:
                assert not complaint(answer, oracle, relative), what


@given(LAYERS, SEEDS, st.floats(-250, 250), st.sampled_from([1e-3, 2e-2]))
def test_the_scale_of_an_output_changes_no_judgement(
    layers: list[Layer], seed: int, power: float, relative: float
) -> None:
    with np.errstate(all="ignore"):
        oracle = network(layers, seed, 8, np.float32).astype(np.float64)
        assume(np.isfinite(oracle).all() and np.abs(oracle).max() > 0)
        scale = 2.0 ** round(power * 3)  # exactly
        for what, answer in answers(oracle, seed, 0.5 * relative).items():
            wide = answer.astype(np.float64)
            here, there = (
                compare_answers([wide], [oracle], relative),
                compare_answers([wide * scale], [oracle * scale], relative),
            )
            assert here.right is there.right, what


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=6), st.integers(-3, 3), st.data())
def test_integers_of_any_size_have_to_be_equal(numbers: list[int], by: int, data: st.DataObject) -> None:
    oracle = np.array(numbers, np.int64)
    answer = oracle.copy()
    answer[data.draw(st.integers(0, len(numbers) - 1))] += by
    assert compare_answers([answer], [oracle], 1e-3).right is (by == 0)
