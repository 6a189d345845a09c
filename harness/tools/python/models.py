"""`adreno_bench.OnnxModel`, where a mistake is one line and not pydantic's many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from device_runner.names import suggestion
from harness.base.failures import UsageError
from harness.base.model import OnnxModel


class CheckedModel(OnnxModel):
    """A user's own network."""

    if not TYPE_CHECKING:  # type checkers know the fields by their names

        def __init__(self, *values: object, **fields: Any) -> None:
            if values:
                raise UsageError("OnnxModel takes its fields by name", hint='write OnnxModel(onnx="net.onnx")')
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise _explain(error) from None

    def __repr_name__(self) -> str:
        """Return the name that Python code knows it by."""
        return OnnxModel.__name__


def _explain(error: ValidationError) -> UsageError:
    problem = error.errors()[-1]  # of a union, the last one is of the form with names
    field = str((problem["loc"] or [""])[0])
    if problem["type"] == "extra_forbidden" and field not in OnnxModel.model_fields:
        return UsageError(f"OnnxModel has no field {field!r}", hint=suggestion(field, OnnxModel.model_fields))
    if problem["type"] == "missing" and field == "onnx":
        return UsageError("OnnxModel needs a file", hint='write OnnxModel(onnx="net.onnx")')
    reason = problem["msg"].removeprefix("Value error, ")
    return UsageError(f"OnnxModel: {field}: {reason}" if field else f"OnnxModel: {reason}")
