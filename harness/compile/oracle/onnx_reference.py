"""ONNX's own reference: every operator in numpy, as the specification defines it. Slow, and it lacks few operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from device_runner.device import Array
from harness.compile.models.outline import all_nodes, attribute_of
from harness.compile.models.preparation.opset import opset_of
from harness.compile.oracle.judge import NoAnswer, Refusal, Values, one_line

RIGHT_FROM = {"BatchNormalization": 14, "Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "RoiAlign": 16, "LRN": 999}
"""First operator set of which onnx 1.23 computes an operator right, 999 if there is none."""
NOT_READ = ("activations", "clip", "input_forget", "sequence_lens")
"""What it leaves out of a recurrent operator; the last is an input."""
POOLS = ("AveragePool", "LpPool", "MaxPool")
"""Those of onnx 1.23 take `auto_pad` for windows without dilations, and round some sizes up otherwise."""


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
            stacks = node.op_type == "Loop" and len(node.output) > len(node.input) - 2  # it joins the rounds' results
            signed = node.op_type == "LpNormalization" and attribute_of(node, "p", 2) == 1  # it sums no magnitudes
            fields = {each.name for each in node.attribute} | {"sequence_lens" for name in node.input[4:5] if name}
            partly = node.op_type in ("GRU", "LSTM", "RNN") and not fields.isdisjoint(NOT_READ)
            if stacks or signed or partly or _misplaces_windows(node) or opset < RIGHT_FROM.get(node.op_type, 0):
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


def _misplaces_windows(node: Any) -> bool:
    """Return whether a pool's windows may lie elsewhere than the specification has them."""
    if node.op_type not in POOLS:
        return False
    uneven = node.op_type == "MaxPool" and len(set(attribute_of(node, "pads", ()))) > 1  # it mixes the axes
    return uneven or attribute_of(node, "auto_pad", "NOTSET") != "NOTSET" or bool(attribute_of(node, "ceil_mode", 0))
