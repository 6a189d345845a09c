"""ONNX's own reference: every operator in numpy, as the specification defines it. Slow, and it lacks few operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from device_runner.device import Array
from harness.compile.models.outline import all_nodes, attribute_of, opset_of
from harness.compile.oracle.judge import NoAnswer, Refusal, Values, one_line

RIGHT_FROM = {"BatchNormalization": 14, "Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "RoiAlign": 16, "LRN": 999}
"""First operator set of which onnx 1.23 computes an operator right, 999 if there is none."""
NOT_READ = {"activations", "clip", "input_forget"}
"""Attributes that it leaves out of a recurrent operator, as the lengths of sequences."""


def _misplaces_windows(node: Any) -> bool:
    """Return whether windows may lie elsewhere.

    It takes `auto_pad` for windows without dilations, rounds some sizes up otherwise, and in a MaxPool mixes the axes.
    """
    uneven = node.op_type == "MaxPool" and len(set(attribute_of(node, "pads", ()))) > 1
    return uneven or attribute_of(node, "auto_pad", "NOTSET") != "NOTSET" or bool(attribute_of(node, "ceil_mode", 0))


def _reads_partly(node: Any) -> bool:
    """Return whether it leaves out an attribute, or the fifth input, which has the lengths of sequences."""
    return any(node.input[4:5]) or not NOT_READ.isdisjoint(each.name for each in node.attribute)


def _bends_the_border(node: Any) -> bool:
    """Return whether it moves a place to the border, and not each of the pixels around it."""
    modes = attribute_of(node, "mode", ""), attribute_of(node, "padding_mode", "")
    return modes == ("cubic", "border")


def _cuts_otherwise(node: Any) -> bool:
    """Return whether it cuts the weights of groups along another axis, or may compute a padding below 0 for SAME."""
    return attribute_of(node, "group", 1) > 1 or "SAME" in attribute_of(node, "auto_pad", "NOTSET")


MISTAKES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _misplaces_windows),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _reads_partly),
    "ConvTranspose": _cuts_otherwise,
    "GridSample": _bends_the_border,
    "Loop": lambda node: len(node.output) > len(node.input) - 2,  # it joins the rounds' results
    "LpNormalization": lambda node: attribute_of(node, "p", 2) == 1,  # it sums no magnitudes
    "Unique": lambda node: not attribute_of(node, "sorted", 1),  # it takes places of the whole from what is left
}
"""Which operators onnx 1.23 computes otherwise than the specification has it."""


class OnnxReference:
    """One network in ONNX's `ReferenceEvaluator`."""

    def __init__(self, model: Any) -> None:
        """Raise NoAnswer for an operator that it lacks."""

        class GlobalMaxPool(OpRun):  # type: ignore[misc]
            """That of onnx 1.23 takes the axes of an image, whatever the rank is."""

            op_domain = ""

            def _run(self, x: Any) -> tuple[Any]:
                return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)

        self.name, opset = f"onnx.reference {onnx.__version__}", opset_of(model)
        for node in all_nodes(model.graph):
            if opset < RIGHT_FROM.get(node.op_type, 0) or (node.op_type in MISTAKES and MISTAKES[node.op_type](node)):
                raise NoAnswer(f"onnx.reference mistakes {node.op_type} of operator set {opset}")
        try:
            self._evaluator = ReferenceEvaluator(model, new_ops=[GlobalMaxPool])
        except Exception as error:  # it raises errors of every kind
            raise NoAnswer(f"onnx.reference: {one_line(error)}") from error

    def ask(self, inputs: Values) -> list[Array]:
        """Run it. Raises NoAnswer, Refusal."""
        try:
            answers = self._evaluator.run(None, dict(inputs))
        except NotImplementedError as error:
            raise NoAnswer(f"onnx.reference: {one_line(error)}") from error
        except MemoryError:
            raise
        except Exception as error:  # it raises errors of every kind
            raise Refusal(f"onnx.reference: {one_line(error)}") from error
        return [np.asarray(answer) if isinstance(answer, np.generic) else answer for answer in answers]
