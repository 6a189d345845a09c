"""What the clml path's quirks keep from CLML, and that they keep nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import clml_golden
import pytest
from defects.clml import batch_norm, constant, conv, conv_transpose, count_composites
from defects.sample import Emit, network

from harness.base.case import Precision
from harness.compile.paths.base import edit_model
from harness.compile.quirks import quirks_for

QUIRKS = quirks_for("clml", Precision.FLOAT32, as_shipped=False)

CHANGED = {
    "add_self": "",
    "batch_norm_batch2": "",
    "clip": "relax.nn.relu6",
    "const_add": "",
    "conv2d_add_fullconst": "nn.conv2d relax.add",
    "conv2d_add_scalar": "nn.conv2d",
    "conv2d_batch2": "",
    "conv2d_bias_c11": "nn.conv2d",
    "conv2d_bias_swapped": "nn.conv2d",
    "conv2d_clip": "nn.conv2d relax.nn.relu6",
    "conv2d_depthwise_bn_relu6": "relax.nn.relu6",
    "conv2d_depthwise_f16": "",
    "conv2d_grouped": "",
    "conv2d_transpose_bn_relu": "nn.batch_norm nn.conv2d_transpose relax.nn.relu",
    "conv2d_weight_input": "relax.nn.relu",
    "max_pool2d_batch2": "",
    "max_pool2d_dilation": "",
    "max_pool2d_nhwc": "",
    "mobilenet_blocks_relu": "relax.nn.relu relax.nn.relu relu.bias.nn.conv2d relu.bias.nn.conv2d",
    "pad_conv2d_both": "nn.conv2d",
    "pad_conv2d_reflect": "nn.conv2d",
    "reshape_batch2": "",
}
"""What is offloaded of a golden case with the quirks worked around, where that differs from TVM's own choice."""

PARTITIONED = {
    case: facts["offloaded"] for case in sorted(clml_golden.CASES) if "error" not in (facts := clml_golden.facts(case))
}
DYNAMIC = {"conv2d_dynamic_batch"}
"""Models with dynamic shapes never get this far; TVM's own check of the activation raises ValueError."""


def offered(mod: Any) -> str:
    found = count_composites(mod, QUIRKS)
    return " ".join(name.removeprefix("openclml.") for name in sorted(found.elements()))


LARGE = {"mobilenet_blocks_relu", "residual_downsample", "small_net"}
"""Each takes TVM a second, and is built for the bytes of its modules as well."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.long] * (case in LARGE))
        for case in sorted(PARTITIONED.keys() - DYNAMIC | CHANGED.keys())
    ],
)
def test_golden_case(case: str) -> None:
    mod = clml_golden.build(case)
    shipped = " ".join(sorted(name.removeprefix("openclml.") for name in PARTITIONED.get(case, [])))
    assert offered(mod) == CHANGED.get(case, shipped)


def expression(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A network body of one expression of TVM's operators."""

    def body(emit: Any, x: Any) -> Any:
        from tvm import relax

        return emit(make(relax.op, x))

    return body


def used_by_a_stranger(emit: Any, x: Any) -> Any:
    from tvm import relax

    convolved = emit(conv(x))
    activated = emit(relax.op.nn.relu(convolved))
    return emit(relax.op.concat([convolved, activated], 1))


def returned_from_the_middle(emit: Any, x: Any) -> Any:
    from tvm import relax

    convolved = emit(conv(x))
    return relax.Tuple([convolved, emit(relax.op.nn.relu(convolved))])


def unscaled(emit: Any, x: Any) -> Any:
    return emit(batch_norm(emit, emit(conv(x)), scale=False, center=False))


def epsilon(value: float) -> Callable[[Any, Any], Any]:
    def body(emit: Any, x: Any) -> Any:
        from tvm import relax

        return emit(batch_norm(emit, emit(relax.op.add(emit(conv(x)), constant(1, 4, 1, 1))), epsilon=value))

    return body


def padded(**pad: Any) -> Callable[[Any, Any], Any]:
    def body(emit: Any, x: Any) -> Any:
        from tvm import relax

        return emit(conv(emit(relax.op.nn.pad(x, **pad)), padding=0))

    return body


AROUND = (0, 0, 0, 0, 1, 1, 1, 1)
BODIES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "x - constant": (expression(lambda op, x: op.subtract(x, constant(1, 4, 8, 8))), "relax.subtract"),
    "constant + x": (expression(lambda op, x: op.add(constant(1, 4, 8, 8), x)), "relax.add"),
    "constant / x": (expression(lambda op, x: op.divide(constant(1, 4, 8, 8), x)), ""),
    "relu6": (expression(lambda op, x: op.clip(x, 0.0, 6.0)), "relax.nn.relu6"),
    "clip to 1": (expression(lambda op, x: op.clip(x, 0, 1)), ""),
    "average without padding": (
        expression(lambda op, x: op.nn.avg_pool2d(x, (2, 2), strides=(2, 2), count_include_pad=True)),
        "nn.avg_pool2d",
    ),
    "average that counts padding": (
        expression(lambda op, x: op.nn.avg_pool2d(x, (3, 3), padding=1, count_include_pad=True)),
        "",
    ),
    "ceil_mode without effect": (
        expression(lambda op, x: op.nn.max_pool2d(x, (2, 2), strides=(2, 2), ceil_mode=True)),
        "nn.max_pool2d",
    ),
    "ceil_mode with effect": (
        expression(lambda op, x: op.nn.max_pool2d(x, (3, 3), strides=(2, 2), ceil_mode=True)),
        "",
    ),
    "softmax of channels": (expression(lambda op, x: op.nn.softmax(x, axis=-3)), "relax.nn.softmax"),
    "softmax of rows": (expression(lambda op, x: op.nn.softmax(x, axis=2)), ""),
    "five dimensions": (expression(lambda op, x: op.reshape(x, (1, 2, 2, 8, 8))), ""),
    "transposed": (expression(lambda op, x: conv_transpose(x)), "nn.conv2d_transpose"),
    "transposed, output padding": (
        expression(lambda op, x: conv_transpose(x, strides=2, output_padding=1)),
        "nn.conv2d_transpose",
    ),
    "transposed, grouped": (expression(lambda op, x: conv_transpose(x, groups=2)), ""),
    "two number formats": (expression(lambda op, x: conv(x, out_dtype="float16")), ""),
    "used by a stranger": (used_by_a_stranger, "nn.conv2d relax.nn.relu"),
    "returned from the middle": (returned_from_the_middle, "nn.conv2d relax.nn.relu"),
    "unscaled batch norm": (unscaled, "bias.nn.conv2d"),
    "usual epsilon": (epsilon(1e-5), "bn.bias.nn.conv2d reshape"),
    "tiny epsilon": (epsilon(1e-8), "bias.nn.conv2d nn.batch_norm"),
    "zeros around": (padded(pad_width=AROUND), "pad.nn.conv2d"),
    "ones around": (padded(pad_width=AROUND, pad_value=1.0), "nn.conv2d"),
}


@pytest.mark.parametrize("name", BODIES)
def test_network(name: str) -> None:
    body, expected = BODIES[name]
    assert offered(network(body)) == expected


def test_global_pool_by_shape() -> None:
    def mod(*shape: int) -> Any:
        return network(expression(lambda op, x: op.mean(x, [2, 3], keepdims=True)), shape)

    assert offered(mod(1, 4, 8, 8)) == "nn.global_avg_pool2d"
    assert offered(mod(1, 4, 4, 8)) == ""


def test_as_shipped_leaves_tvms_own_choice() -> None:
    shipped = quirks_for("clml", Precision.FLOAT32, as_shipped=True)
    assert {quirk.id for quirk in shipped} == {"tir-pipeline-tuple", "clml-not-imported"}
    mod = network(lambda emit, x: emit(conv(x, groups=4)))
    assert count_composites(mod, shipped) == Counter({"openclml.nn.conv2d": 1})


def test_a_clip_behind_a_batch_norm_that_is_folded_takes_half_precision() -> None:
    from tvm import relax, topi

    def body(emit: Emit, data: Any) -> Any:
        normed = emit(batch_norm(emit, emit(conv(data))))
        return relax.BlockBuilder.current().emit_te(topi.clip, normed, 0.0, 6.0)

    quirks = quirks_for("clml", Precision.FLOAT16, as_shipped=False)
    halved = relax.transform.ToMixedPrecision()(edit_model(network(body), quirks))
    assert "float16" in halved.script()
    assert "batch_norm" not in halved.script()
