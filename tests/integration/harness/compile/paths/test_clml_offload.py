"""The offload report: its counts by hand, its reasons, its text."""

from __future__ import annotations

import json
from typing import Any

from defects.clml import constant, conv, partition_module, parts
from defects.sample import network
from pydantic import TypeAdapter

from harness.base.case import Precision
from harness.compile.paths.base import ImageLimits
from harness.compile.paths.clml import ClmlPath
from harness.compile.paths.clml.offload import MACS_PER_BOUNDARY_BYTE, offload_of
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.compile.quirks import quirks_for
from harness.tools.explain.partitions import render

QUIRKS = quirks_for("clml", Precision.FLOAT32, as_shipped=False)
PIXELS = 8 * 8
PLANE_BYTES = 4 * PIXELS * 4
"""Four channels of 8 x 8 in float32."""


def report_of(mod: Any) -> dict[str, Any]:
    report = offload_of(parts(mod, QUIRKS))
    assert report is not None
    return report


def activated_twice(emit: Any, x: Any) -> Any:
    """Convolution and activation, a sigmoid that no pattern has, and the same again."""
    from tvm import relax

    for _ in range(2):
        x = emit(relax.op.sigmoid(emit(relax.op.nn.relu(emit(conv(x))))))
    return x


def test_counts() -> None:
    report = report_of(network(activated_twice))
    macs = 4 * PIXELS * 4 * 9
    (part,) = report["subgraphs"]
    assert part["calls"] == 2, "TVM makes one subgraph of two that are equal"
    assert part["composites"] == {"openclml.relu.nn.conv2d": 1}
    assert (part["operators"], part["half"]) == (2, False)
    assert part["macs"] == macs
    assert part["boundary_bytes"] == 2 * PLANE_BYTES
    assert (report["operators"], report["operators_offloaded"]) == (6, 4)
    assert (report["macs"], report["macs_offloaded"]) == (2 * macs, 2 * macs)
    assert report["boundary_bytes"] == 4 * PLANE_BYTES
    assert report["operator_share"] == 0.666667
    assert report["mac_share"] == 1


def test_macs_of_what_stays() -> None:
    from tvm import relax

    def body(emit: Any, x: Any) -> Any:
        grouped = emit(conv(x, groups=4))
        transposed = emit(relax.op.nn.conv2d_transpose(grouped, constant(4, 2, 3, 3)))
        rows = emit(relax.op.reshape(transposed, (1, 2, 100)))
        rows = emit(relax.op.nn.conv1d(rows, constant(2, 2, 3), padding=1))
        return emit(relax.op.matmul(rows, constant(100, 10)))

    report = report_of(network(body))
    left = {outside["operator"]: outside["macs"] for outside in report["outside"]}
    assert left["relax.nn.conv2d"] == 4 * PIXELS * 9, "each output meets one channel"
    assert left["relax.nn.conv1d"] == 2 * 100 * 2 * 3, "of one axis, as in networks of sound"
    assert left["relax.matmul"] == 2 * 10 * 100
    assert report["macs_offloaded"] == 4 * PIXELS * 2 * 9, "each input of a transposed one meets two channels"


def test_reasons() -> None:
    from tvm import relax

    def body(emit: Any, x: Any) -> Any:
        biased = emit(relax.op.add(emit(conv(x, groups=4)), constant(1, 4, 1, 1)))
        clipped = emit(relax.op.clip(biased, 0, 1))
        return emit(relax.op.mean(emit(relax.op.sigmoid(clipped)), [1]))

    why = {outside["operator"]: outside["why"] for outside in report_of(network(body))["outside"]}
    assert why["relax.nn.conv2d"] == "clml-grouped-conv refused openclml.bias.nn.conv2d, openclml.nn.conv2d"
    assert why["relax.add"] == (
        "clml-grouped-conv refused openclml.bias.nn.conv2d; TVM's check_binary_op refused openclml.relax.add"
    )
    assert why["relax.clip"] == "clml-relu6 refused openclml.relax.nn.relu6"
    assert why["relax.sigmoid"] == "no pattern ends in relax.sigmoid"
    assert why["relax.mean"] == "no pattern with relax.mean fits its arguments"


def test_small_and_untunable_parts_are_marked() -> None:
    bare = report_of(network(lambda emit, x: emit(conv(x))))["subgraphs"][0]
    assert bare["untunable"] == 1
    assert bare["macs"] < MACS_PER_BOUNDARY_BYTE * bare["boundary_bytes"]
    assert bare["may_lose"]
    activated = report_of(network(activated_twice))["subgraphs"][0]
    assert activated["untunable"] == 0


def test_text_says_it_all() -> None:
    text = render(TypeAdapter(OffloadReport).validate_python(report_of(network(activated_twice))))
    assert "4 of 6 (66.7%)" in text
    assert "1 relu.nn.conv2d" in text
    assert "no pattern ends in relax.sigmoid" in text


def test_nothing_offloaded() -> None:
    from tvm import relax

    report = report_of(network(lambda emit, x: emit(relax.op.sigmoid(x))))
    assert (report["operators"], report["operators_offloaded"], report["operator_share"]) == (1, 0, 0)
    assert "0 of 1 (0.0%)" in render(TypeAdapter(OffloadReport).validate_python(report))


def test_other_modules_carry_no_report() -> None:
    assert offload_of(network(lambda emit, x: emit(conv(x)))) is None


def test_the_report_is_plain_json() -> None:
    target = ClmlPath().target(ImageLimits(), None)
    report = offload_of(partition_module(network(activated_twice), target, ()))
    assert json.loads(json.dumps(report)) == report
