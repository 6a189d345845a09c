"""A network whose branches stand in the place of each If that is decided, for what is measured of its numbers.

What rounding does is measured by moving the network's numbers (`harness.compile.oracle.rounding`), and those inside a
branch are out of reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.failures import NoOutsideAnswer
from harness.compile.models.onnx_inputs import fix_inputs, fix_shapes, inputs_of
from harness.compile.models.preparation.branches import take_constant_branches
from harness.compile.models.preparation.constants import fold
from harness.compile.models.spec import FixedInput, InputSpec
from harness.compile.oracle.truth import first_answer, judges_of

if TYPE_CHECKING:
    from device_runner.device import Array


SAME = 1e-5
"""Two answers lie no further apart, relative to the peak. onnxruntime packs weights that are constants in one of the
networks, and then adds in another order (1e-6 of silero VAD)."""


class PlainNetwork(NamedTuple):
    """A network, and the inputs that it has."""

    model: Any
    inputs: Mapping[str, Array]


def take_decided_branches(
    model: Any, fixed: Sequence[FixedInput], inputs: Mapping[str, Array], answers: Sequence[Array]
) -> PlainNetwork:
    """Return the network with the branches that it takes; as it is, if it has none that are decided beforehand.

    A network that does not give the same answers is not taken: a mistake would pass for rounding.
    """
    import onnx

    if not any(node.op_type == "If" for node in model.graph.node):
        return PlainNetwork(model, inputs)
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    arrays = {value.name: inputs[value.name] for value in inputs_of(plain)}
    fix_shapes(plain, [InputSpec(name, array.shape, str(array.dtype)) for name, array in arrays.items()])
    fix_inputs(plain, {each.spec.name: each.number for each in fixed}, {})
    fold(plain)
    take_constant_branches(plain)
    rest = {value.name: inputs[value.name] for value in inputs_of(plain)}
    return PlainNetwork(plain, rest) if _agrees(plain, rest, answers) else PlainNetwork(model, inputs)


def _agrees(model: Any, inputs: Mapping[str, Array], answers: Sequence[Array]) -> bool:
    try:
        own = first_answer(judges_of(model), inputs).outputs
    except NoOutsideAnswer:
        return False
    return all(_close(mine, right) for mine, right in zip(own, answers, strict=True))


def _close(mine: Array, right: Array) -> bool:
    import numpy as np

    if right.dtype.kind != "f":
        return np.array_equal(mine, right)
    return np.allclose(mine, right, rtol=0, atol=SAME * float(np.abs(right).max(initial=0)), equal_nan=True)
