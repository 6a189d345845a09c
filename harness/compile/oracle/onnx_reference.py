"""ONNX's own reference: every operator in numpy, as the specification defines it. Slow, and it lacks few operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.compile.models.preparation.opset import opset_of
from harness.compile.oracle.judge import NoAnswer, Refusal, one_line

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.compile.oracle.judge import Values

OLDEST_BATCH_NORM = 14
"""First operator set whose batch norms onnx 1.23 computes for inference; older ones are off by 3 % of the peak."""


class OnnxReference:
    """One network in ONNX's `ReferenceEvaluator`."""

    def __init__(self, model: Any) -> None:
        """Raise NoAnswer for an operator that it lacks."""
        import onnx
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        if opset_of(model) < OLDEST_BATCH_NORM and any(n.op_type == "BatchNormalization" for n in model.graph.node):
            raise NoAnswer(f"onnx.reference mistakes batch norms of operator sets before {OLDEST_BATCH_NORM}")
        try:
            self._evaluator = ReferenceEvaluator(model)
        except Exception as error:  # it raises errors of every kind
            raise NoAnswer(f"onnx.reference: {one_line(error)}") from error

    def ask(self, inputs: Values) -> list[Array]:
        """Run it. Raises NoAnswer, Refusal."""
        import numpy as np

        try:
            answers = self._evaluator.run(None, dict(inputs))
        except NotImplementedError as error:
            raise NoAnswer(f"onnx.reference: {one_line(error)}") from error
        except MemoryError:
            raise
        except Exception as error:  # it raises errors of every kind
            raise Refusal(f"onnx.reference: {one_line(error)}") from error
        return [np.asarray(answer) if isinstance(answer, np.generic) else answer for answer in answers]
