"""What a person reads of where a network goes off."""

from pathlib import Path

import pytest
from fake_records import a_record
from onnx import TensorProto, helper

from harness.base.outcome import Outcome, Owner
from harness.compile.paths.kernels import kernels
from harness.measure.facts import Accuracy
from harness.tools.explain.divergence import DivergenceReport, PieceKernel, begin_alike
from harness.tools.explain.locate import Divergence
from harness.tools.explain.pieces import CuttableNetwork
from harness.tools.explain.trial import Finding, PieceTrial

RIGHT = a_record(accuracy=Accuracy(True, 1e-6, 1e-6, 1.0, True, 1e-3))
OFF = a_record(outcome=Outcome.WRONG_RESULT, message="it is off", accuracy=Accuracy(False, 5.0, 5.0, 0.25, False, 1e-3))


def a_network() -> CuttableNetwork:
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="c"), helper.make_node("Relu", ["a"], ["y"], name="r")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4, 8, 8)) for name in ("x", "y")]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, (4, 4, 1, 1), [1.0] * 16)]
    return CuttableNetwork(helper.make_model(helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)))


def a_report(*around: tuple[int, bool], kernels: tuple[PieceKernel, ...] = ()) -> str:
    """Operator 2 is the first that is off; of the pieces around it, so deep, each is off or not."""
    network = a_network()
    trials = tuple(PieceTrial(network.around(2, depth), OFF if off else RIGHT, Path()) for depth, off in around)
    beginnings = (PieceTrial(network.first(1), RIGHT, Path()),)
    found = Divergence(Finding(Outcome.WRONG_RESULT, Owner.PATH), (network.operators[1],), beginnings, trials)
    kept = Path("/pieces/key") if found.smallest else None
    return DivergenceReport(
        OFF, same_artifact=True, network=network, divergence=found, folder=kept, kernels=kernels
    ).text()


def test_the_table_leads_from_what_is_right_to_the_whole() -> None:
    rows = [line.split() for line in a_report((1, True)).splitlines()[4:6]]
    assert rows == [
        ["1", "of", "2", "Conv", "c", "1x4x8x8", "1.0e-06", "/", "1.0e-03", "1.0000", "ok"],
        ["2", "of", "2", "Relu", "r", "1x4x8x8", "5.0e+00", "/", "1.0e-03", "0.2500", "wrong-result"],
    ]


@pytest.mark.parametrize(
    ("around", "said"),
    [
        ([(1, True)], ["Alone, on the oracle's inputs, it is wrong-result, too.", "/pieces/key/piece.onnx"]),
        (
            [(1, False), (2, True)],
            [
                "Alone, on the oracle's inputs, it is ok: with this cut the defect is gone.",
                "Compiled together with Conv c it is wrong-result: fusion matters.",
            ],
        ),
        (
            [(1, False), (2, False)],
            ["No piece around it, of up to 2 operators, is wrong-result: fusion or memory planning matters."],
        ),
    ],
)
def test_a_cut_with_which_the_defect_is_gone_is_said(around: list[tuple[int, bool]], said: list[str]) -> None:
    text = a_report(*around)
    assert "The first operator whose output is off is Relu r, number 2 of 2." in text
    assert "Relu r reads a 1x4x8x8." in text
    assert all(line in text for line in said)


def test_another_failure_of_an_operator_alone_is_not_called_right() -> None:
    network, refused = a_network(), a_record(outcome=Outcome.KERNEL_BUILD_ERROR, message="expected ')'")
    alone = PieceTrial(network.around(2, 1), refused, Path())
    finding = Finding(Outcome.WRONG_RESULT, Owner.PATH)
    found = Divergence(finding, (network.operators[1],), (PieceTrial(network.first(1), RIGHT, Path()),), (alone,))
    text = DivergenceReport(OFF, True, network, found, None, ()).text()
    assert "it is kernel-build-error: with this cut another failure hides the defect." in text


@pytest.mark.parametrize(("precision", "said"), [("float16", True), ("float32", False)])
def test_a_constant_that_half_precision_makes_nothing_of_is_named(precision: str, said: bool) -> None:
    node = helper.make_node("Add", ["x", "eps"], ["y"], name="a")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4)) for name in ("x", "y")]
    eps = helper.make_tensor("eps", TensorProto.FLOAT, (), [1e-15])
    network = CuttableNetwork(helper.make_model(helper.make_graph([node], "net", ends[:1], ends[1:], [eps])))
    trials = (PieceTrial(network.around(1, 1), OFF, Path()),)
    found = Divergence(Finding(Outcome.WRONG_RESULT, Owner.PATH), (network.operators[0],), (), trials)
    whole = a_record(f"tiny-opencl-{precision}-untuned", outcome=Outcome.WRONG_RESULT, accuracy=OFF.accuracy)
    text = DivergenceReport(
        whole, same_artifact=True, network=network, divergence=found, folder=None, kernels=()
    ).text()
    assert ("Half precision makes 0 of the constant 1e-15 that Add a reads." in text) is said


def test_each_kernel_is_named_with_its_twin_in_the_whole_network() -> None:
    files = (
        PieceKernel(Path("/k/relu_kernel.cl"), same="relu1_kernel"),
        PieceKernel(Path("/k/pad_kernel.cl"), alike=("fused_pad_add_kernel",)),
        PieceKernel(Path("/k/add_kernel.cl"), alike=("a", "b", "c", "d")),
        PieceKernel(Path("/k/mean_kernel.cl")),
    )
    text = a_report((1, True), kernels=files)
    assert "Its kernels are in /k:" in text
    assert [line.split(maxsplit=1) for line in text.splitlines()[-4:]] == [
        ["relu_kernel.cl", "relu1_kernel has the same code"],
        ["pad_kernel.cl", "by its name, perhaps fused_pad_add_kernel"],
        ["add_kernel.cl", "by its name, one of 4"],
        ["mean_kernel.cl", "none is like it"],
    ]


def test_kernels_are_alike_by_the_operators_in_their_names() -> None:
    others = (
        "fused_conv2d_add_relu_kernel",
        "fused_conv2d_add2_relu_kernel_1",
        "conv2d_transpose_kernel",
        "add_kernel",
    )
    assert begin_alike("fused_conv2d_add1_kernel", others) == ("fused_conv2d_add_relu_kernel",)
    assert begin_alike("fused_conv2d_add1_kernel_1", others) == ("fused_conv2d_add2_relu_kernel_1",)
    assert begin_alike("softmax_kernel", others) == ()


def test_kernels_that_differ_in_names_alone_have_the_same_code() -> None:
    sources = (
        "__kernel void a(__global float* out_ptr, __global float* x_ptr) {\n  out_ptr[0] = x_ptr[0];\n}\n",
        "__kernel void b(__global float* lv5_ptr, __global float* y_ptr) {\n  y_ptr[0] = lv5_ptr[0];\n}\n",
        "__kernel void a(__global float* out_ptr, __global float* x_ptr) {\n  out_ptr[0] = x_ptr[1];\n}\n",
        "__kernel void a(__global half* out_ptr, __global float* x_ptr) {\n  out_ptr[0] = x_ptr[0];\n}\n",
    )
    one, renamed, other, half = (next(kernels(source)).code for source in sources)
    assert one == renamed
    assert len({one, other, half}) == 3
