"""Operators on constants, which numpy computes instead of a function that TVM compiles for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from defects.sample import Emit, network
from tvm import relax, tirx

from harness.compile.compiler.compat import array_of, is_constant
from harness.compile.quirks.constants import compute_constants

NUMBERS = [0.0, -0.0, 1.0, -2.5, 1e-45, 3e-39, 1.1754944e-38, 16777217.0, 3e38, -3e38, np.inf, -np.inf, np.nan, 0.1]
"""Zeros, numbers below the normal ones, the largest, and what is no number."""
LEFT = np.array([each for each in NUMBERS for _ in NUMBERS], "float32").reshape(1, 28, 7, 1)
RIGHT = np.array(NUMBERS * len(NUMBERS), "float32").reshape(1, 28, 7, 1)
HALF = RIGHT.clip(-6e4, 6e4).astype("float16")
LONG = np.array([-(2**63), -1, 2**31, 2**53 + 1])
Operator = Callable[[Emit], Any]


def by_tvm(operator: Operator) -> Any:
    """Return what TVM folds an operator to."""
    main = relax.transform.FoldConstant()(_network_of(operator))["main"]
    constants: list[Any] = []
    relax.analysis.post_order_visit(main, lambda part: constants.append(part) if is_constant(part) else None)
    return array_of(constants[-1])


def by_numpy(operator: Operator) -> Any:
    """Return what numpy computes before; the call for what is left to TVM."""
    ours, _fold = compute_constants([relax.transform.FoldConstant()])
    (block,) = ours(_network_of(operator))["main"].body.blocks
    *_, value = (binding.value for binding in block.bindings if not isinstance(binding.value, relax.Var))
    return array_of(value) if is_constant(value) else value


def _network_of(operator: Operator) -> Any:
    return network(lambda emit, _data: emit(operator(emit)), (1,))


def texels(n: Any, c: Any, h: Any, w: Any) -> tuple[Any, ...]:
    return n, c // 4, h, w, c % 4


def weights(o: Any, i: Any, h: Any, w: Any) -> tuple[Any, ...]:
    return o, i // 4, h, w, i % 4


OPERATORS: dict[str, Operator] = {
    "add": lambda _emit: relax.op.add(relax.const(LEFT), relax.const(RIGHT)),
    "subtract": lambda _emit: relax.op.subtract(relax.const(LEFT), relax.const(RIGHT)),
    "multiply": lambda _emit: relax.op.multiply(relax.const(LEFT), relax.const(RIGHT)),
    "divide": lambda _emit: relax.op.divide(relax.const(LEFT), relax.const(RIGHT)),
    "a number added": lambda _emit: relax.op.add(relax.const(LEFT), relax.const(np.float32(1e-5))),
    "broadcast": lambda _emit: relax.op.multiply(relax.const(LEFT), relax.const(RIGHT[:, :, :1])),
    "sqrt": lambda _emit: relax.op.sqrt(relax.const(LEFT)),
    "expand_dims": lambda _emit: relax.op.expand_dims(relax.const(LEFT), [1, 5]),
    "squeeze": lambda _emit: relax.op.squeeze(relax.const(LEFT), [0]),
    "reshape": lambda _emit: relax.op.reshape(relax.const(LEFT), (7, 28)),
    "reshape of long integers": lambda _emit: relax.op.reshape(relax.const(LONG, "int64"), (2, 2)),
    "reshape of doubles": lambda _emit: relax.op.reshape(relax.const(LONG / 3, "float64"), (2, 2)),
    "texels": lambda _emit: relax.op.layout_transform(relax.const(LEFT), tirx.IndexMap.from_func(texels)),
    "half precision": lambda _emit: relax.op.astype(relax.const(LEFT), "float16"),
    "from half precision": lambda _emit: relax.op.astype(relax.const(HALF), "float32"),
    "sums of half precision": lambda _emit: relax.op.add(relax.const(HALF), relax.const(HALF[:, ::-1])),
    "products of half precision": lambda _emit: relax.op.multiply(relax.const(HALF), relax.const(HALF[:, ::-1])),
    "ratios of half precision": lambda _emit: relax.op.divide(relax.const(HALF), relax.const(HALF[:, ::-1])),
    "roots of half precision": lambda _emit: relax.op.sqrt(relax.const(HALF)),
    "texels of half precision": lambda _emit: relax.op.layout_transform(
        relax.const(HALF), tirx.IndexMap.from_func(weights)
    ),
    "whether numbers are none": lambda _emit: relax.op.isnan(relax.const(LEFT)),
    "bound of a Clip": lambda emit: relax.op.where(
        emit(relax.op.isnan(relax.const(np.float32(6)))), relax.const(np.float32(np.inf)), relax.const(np.float32(6))
    ),
    "one after the other": lambda emit: relax.op.sqrt(
        emit(relax.op.add(emit(relax.op.sqrt(relax.const(LEFT))), relax.const(RIGHT)))
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_bits_are_those_that_tvm_would_compute(name: str) -> None:
    ours, theirs = by_numpy(OPERATORS[name]), by_tvm(OPERATORS[name])
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    numbers = ~np.isnan(theirs)  # which of the bits of a NaN are set, nothing says
    assert (np.isnan(ours) == ~numbers).all()
    assert ours[numbers].tobytes() == theirs[numbers].tobytes()


@pytest.mark.parametrize(
    "operator",
    [
        lambda _emit: relax.op.exp(relax.const(LEFT)),
        lambda _emit: relax.op.astype(relax.const(LEFT), "int32"),
        lambda _emit: relax.op.layout_transform(
            relax.const(LEFT[:, :27]), tirx.IndexMap.from_func(texels), pad_value=0.0
        ),
        lambda _emit: relax.op.layout_transform(
            relax.const(LEFT), tirx.IndexMap.from_func(lambda n, c, h, w: (n, tirx.truncmod(c + 1, 28), h, w))
        ),
    ],
    ids=[
        "a function that is rounded elsewhere",
        "integers of floats",
        "a layout with room to spare",
        "a layout of another kind",
    ],
)
def test_the_rest_is_left_to_tvm(operator: Operator) -> None:
    assert not isinstance(by_numpy(operator), np.ndarray)


def test_what_an_input_takes_part_in_stays() -> None:
    mod = network(lambda emit, data: emit(relax.op.add(data, relax.const(np.ones(8, "float32")))), (8,))
    ours, _fold = compute_constants([relax.transform.FoldConstant()])
    assert ours(mod)["main"].body.blocks[0].bindings[0].value.op.name == "relax.add"
