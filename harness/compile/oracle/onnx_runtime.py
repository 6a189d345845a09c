"""onnxruntime on the CPU, as plain as it can be: one thread, and the graph as the file has it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from device_runner.device import Array
from harness.compile.models.outline import (
    NetworkView,
    all_nodes,
    attribute_of,
    copy_of,
    is_onnx,
    kind_of,
    opset_of,
)
from harness.compile.models.preparation.casts import compute_in_single
from harness.compile.models.preparation.constants import fold
from harness.compile.models.preparation.definitions import inline, lower_definitions, write_norm
from harness.compile.models.preparation.editing import NodeWriter, rewrite, set_attribute
from harness.compile.models.preparation.empties import scales_of
from harness.compile.models.preparation.padding import write_pads_of, write_repeats
from harness.compile.models.preparation.resizing import MODE, POLICY
from harness.compile.models.preparation.spectra import write_to_real
from harness.compile.oracle.judge import NoAnswer, Refusal, Values, one_line

NEWEST_IR_VERSION = 10
"""Newest version of ONNX's format that every supported onnxruntime reads. Later ones only add number formats."""
LP_NORM_IS_LACKING = 22
"""First operator set whose LpNormalization onnxruntime 1.24 lacks."""
NEWEST_OPSET = 23
"""Newest operator set that every supported onnxruntime reads."""
_BYTES: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "ConvInteger": (1, [(0, 2)]),
    "MatMulInteger": (0, [(1, 3)]),
    "QLinearConv": (0, [(3, 5)]),
    "QLinearMatMul": (0, [(3, 5)]),
    "com.microsoft.QGemm": (0, [(3, 5)]),
    "com.microsoft.QAttention": (0, [(1, 7)]),
    "com.microsoft.MatMulIntegerToFloat": (0, [(1, 5)]),
    "com.microsoft.DynamicQuantizeMatMul": (0, [(1, 3)]),
    "com.microsoft.DynamicQuantizeLSTM": (0, [(1, 9), (2, 11)]),
}
"""Of products of bytes, which input is the left operand of onnxruntime's, and where each right one and its zero point
are."""
_NO_MEMORY = ("bad_alloc", "Failed to allocate memory")


class OnnxRuntime:
    """One network in onnxruntime."""

    def __init__(self, model: Any) -> None:
        """Raise NoAnswer for an operator, or a number format of one, that onnxruntime lacks."""
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # newer releases (1.32) report their use, and look when imported
        try:
            import onnxruntime
        except ImportError as error:
            raise NoAnswer(f"onnxruntime is not installed ({error})") from error
        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 4
        data = _rewritten(model)  # an error here is ours
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions have no common class but this one
            raise _as_ours(error, NoAnswer) from error

    def ask(self, inputs: Values) -> list[Array]:
        """Run it. Raises NoAnswer, Refusal."""
        from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Lacking

        try:
            answers: list[Array] = self._session.run(None, dict(inputs))
        except Lacking as error:
            raise _as_ours(error, NoAnswer) from error
        except Exception as error:  # its exceptions have no common class but this one
            raise _as_ours(error, Refusal) from error
        return answers


class FoldedOnnxRuntime(OnnxRuntime):
    """A network that onnxruntime refuses, once ONNX's reference has computed what depends on no input.

    onnxruntime (1.24) has no Sin and Cos of doubles, by which torch's exporter writes the places of D-FINE's pixels.
    """

    def __init__(self, model: Any) -> None:
        """Raise NoAnswer if onnxruntime refuses it all the same, or takes it whole."""
        if _takes(model) or not fold(folded := copy_of(model)):
            raise NoAnswer("")
        super().__init__(folded)
        self.name += " behind onnx.reference"


def _takes(model: Any) -> bool:
    try:
        OnnxRuntime(model)
    except NoAnswer:
        return False
    return True


def _rewritten(model: Any) -> bytes:
    """Return the network as onnxruntime computes it right. The model itself stays as it is."""
    graph, plain, constants = model.graph, type(model)(), len(model.graph.initializer)
    plain.graph.node.extend(graph.node)
    plain.opset_import.extend(model.opset_import)
    plain.ir_version = model.ir_version
    try:
        _rewrite(model)
        data: bytes = model.SerializeToString()
    finally:
        del graph.node[:], graph.initializer[constants:], model.opset_import[:]
        model.MergeFrom(plain)
    return data


def _rewrite(model: Any) -> None:
    graph = model.graph
    model.ir_version = min(model.ir_version, NEWEST_IR_VERSION)
    if any(is_onnx(node, "Attention") for node in graph.node) and not inline(model, ("Attention",)):
        raise NoAnswer("onnxruntime 1.24 computes an Attention with hidden rows, or a softcap, otherwise than ONNX")
    if opset_of(model) > NEWEST_OPSET:
        lower_definitions(model, NEWEST_OPSET)
    view = NetworkView(model)
    for node in all_nodes(graph):
        if is_onnx(node, "Resize"):
            _scale_crops(node, view, NodeWriter(model, "scales"))
    # ONNX defines the one by constants in float32, and onnxruntime 1.24 rounds quotients of halves towards 0.
    compute_in_single(model, ["MeanVarianceNormalization", "QuantizeLinear"])
    rewrite(model, "norm", write_norm, "MeanVarianceNormalization")
    if opset_of(model) >= LP_NORM_IS_LACKING:
        rewrite(model, "norm", write_norm, "LpNormalization")
    rewrite(model, "spectrum", write_to_real, "DFT")
    write_repeats(model)
    _write_padding_of_pools(model)
    _write_unsigned(model)
    _write_sigmoids(model)


def _scale_crops(node: Any, view: NetworkView, write: NodeWriter) -> None:
    """Let a Resize scale by a little more than 1 where it crops an axis to as many pixels as the axis has.

    Scaled by 1, onnxruntime (1.24) crops nothing. The places of a crop do not depend on the scale. Raises NoAnswer if
    all axes keep their extents, which it copies.
    """
    before, after, region = view.shape(node.input[0]), view.shape(node.output[0]), view.constant(node, 1)
    if attribute_of(node, MODE, "") != "tf_crop_and_resize" or not before or not after or region is None:
        return
    axes = list(attribute_of(node, "axes", range(len(before))))
    old, new = (np.take(shape, axes) for shape in (before, after))
    cropped = (old == new) & (region.reshape(2, -1).T != (0, 1)).any(1)
    if cropped.any() and before == after:
        raise NoAnswer("onnxruntime 1.24 does not crop an image that keeps its shape")
    if cropped.any():
        scales = np.where(cropped, np.nextafter(np.float32(1), np.float32(2)), scales_of(old, new))
        node.input[2:] = [write.constant(scales)]
        set_attribute(node, POLICY, None)


def _write_padding_of_pools(model: Any) -> None:
    """Take the padding out of average pools that count it, if they round their size up or are of operator set 19.

    onnxruntime (1.24) then divides by places beyond the padding. From operator set 19 on it takes the padding of one
    axis for another's, and finds one itself without dilations. ONNX's reference and torch do not. A window that begins
    in the padding at the end is none, also of a MaxPool.
    """
    opset, view = opset_of(model), NetworkView(model)
    for node in [node for node in all_nodes(model.graph) if is_onnx(node, "MaxPool", "LpPool")]:
        dilated = any(each > 1 for each in attribute_of(node, "dilations", ()))
        automatic = attribute_of(node, "auto_pad", "NOTSET").startswith("SAME")
        # Of dilated windows that pad by themselves it takes the padding of those without dilations.
        if (dilated and automatic) or attribute_of(node, "ceil_mode", 0):
            write_pads_of(node, view, ("LpPool", "MaxPool"))

    def write_padding(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        if opset >= 19 or attribute_of(node, "auto_pad", "NOTSET") == "VALID":
            write_pads_of(node, view)
        fields = {field.name: helper.get_attribute_value(field) for field in node.attribute}
        counts, by_itself = fields.pop("count_include_pad", 0), fields.pop("auto_pad", b"NOTSET") != b"NOTSET"
        if not counts or by_itself or (opset < 19 and not fields.get("ceil_mode")):
            return False
        rank = len(fields["kernel_shape"])
        extents = write.add("Shape", write.add("AveragePool", node.input[0], **fields))
        pads = fields.pop("pads", [0] * 2 * rank)
        whole = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
        if opset < 11:  # its Pad has them as an attribute
            wide = write.add("Pad", node.input[0], pads=whole)
        else:
            wide = write.add("Pad", node.input[0], write.integers(*whole))
        results = write.add("AveragePool", wide, **fields)
        write.add("Slice", results, write.integers(*[0] * (rank + 2)), extents, output=node.output[0])
        return True

    rewrite(model, "padded", write_padding, "AveragePool")


def _write_unsigned(model: Any) -> None:
    """Add 128 to signed bytes, and to their zero points, where they are multiplied by unsigned ones.

    On a processor without VNNI, onnxruntime (1.24) adds two such products in 16 bits, which overflow: it gives the
    largest number of 16 bits in place of their sum. Its own way out, `session.x64quantprecision`, may end the process.
    """

    def move(name: str, write: NodeWriter) -> str:
        if not name:
            return write.constant(np.uint8(128))
        wide = write.add("Add", write.add("Cast", name, to=TensorProto.INT32), write.constant(np.int32(128)))
        return write.add("Cast", wide, to=TensorProto.UINT8)

    def write_moved(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        left, rights = _BYTES.get(kind_of(node), (0, []))
        signed = [places for places in rights if view.number_format(node.input[places[0]]) == TensorProto.INT8]
        if not signed or view.number_format(node.input[left]) == TensorProto.INT8:
            return False
        node = copy_of(node)
        node.input.extend([""] * (max(zero for _, zero in signed) + 1 - len(node.input)))
        for place in (place for places in signed for place in places):
            node.input[place] = move(node.input[place], write)
        write.nodes.append(node)
        return True

    rewrite(model, "unsigned", write_moved, inside=True)


def _write_sigmoids(model: Any) -> None:
    """Write sigmoids as exp(-softplus(-x)), but not of doubles, of which onnxruntime has no Softplus.

    onnxruntime's own (1.24) is off by 1.4e-7 of 1, and 0 from -18 on, where the logistic function is 1.5e-8 and more
    than 0 further on.
    """

    def write_logistic(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        if view.number_format(node.input[0]) == TensorProto.DOUBLE:
            return False
        exponent = write.add("Softplus", write.add("Neg", node.input[0]))
        write.add("Exp", write.add("Neg", exponent), output=node.output[0])
        return True

    rewrite(model, "logistic", write_logistic, "Sigmoid", inside=True)


def _as_ours(error: Exception, kind: type[Exception]) -> Exception:
    """Return what onnxruntime raised, as ours. A lack of memory is neither a lack of an operator nor a refusal."""
    if any(sign in str(error) for sign in _NO_MEMORY):
        return MemoryError(one_line(error))
    return kind(f"onnxruntime: {_shortened(one_line(error))}")


def _shortened(text: str) -> str:
    """Shorten onnxruntime's message to `Gather 'g': out of bounds`.

    It reads `[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running Gather node.
    Name:'g' Status Message: out of bounds`.
    """
    text = text.rpartition("[ONNXRuntimeError] : ")[2].split(" : ", 2)[-1]
    begin, running, rest = text.partition("Non-zero status code returned while running ")
    node, message, why = rest.partition("Status Message: ")
    if not running or not message:
        return begin or text
    return f"{node.replace(' node. Name:', ' ').strip()}: {why}"
