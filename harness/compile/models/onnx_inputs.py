"""What a caller of a network must fill: its inputs, with every extent that the file leaves open fixed by hand.

An extent is fixed by the input's whole shape, `input = [1, 3, 224, 224]`, or by the name that the file gives it,
`batch = 1`, wherever that stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from device_runner.names import suggestion
from harness.base.failures import ModelError
from harness.compile.models.outline import OLDEST_IR_VERSION
from harness.compile.models.spec import FixedInput, InputSpec

Shapes = Mapping[str, Sequence[int] | int]
"""Whole shapes by the name of the input, or extents by the name that the file gives them."""

Fixes = Mapping[str, float]
"""A number for every element of an input, by the input's name."""

LARGEST_INPUT_BYTES = 4 << 30


def inputs_of(model: Any) -> list[Any]:
    """Return inputs that are no weights: old files list those, too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def input_specs(model: Any, shapes: Shapes | None = None) -> tuple[InputSpec, ...]:
    """Return the inputs that a caller must fill, with `shapes` in place of what the file leaves open.

    Raises `ModelError`.
    """
    inputs, shapes = inputs_of(model), shapes or {}
    names, extents = [value.name for value in inputs], open_extents(inputs)
    for name in shapes:
        if name not in (*names, *extents):
            otherwise = "its inputs and dynamic dimensions:" if extents else "its inputs:"
            hint = suggestion(name, names + extents, otherwise=otherwise)
            what = "input or dynamic dimension" if extents else "input"
            raise ModelError(f"the model has no {what} {name!r}", hint=hint)
    return tuple(_spec(value, shapes) for value in inputs)


def require_tensors(model: Any) -> None:
    """Raise `ModelError` for an input that is no tensor of numbers, or a tensor of none, whatever its open shape."""
    for value in inputs_of(model):
        _require_tensor(value)
        _require_elements(value)
        _dtype(value)


def open_extents(inputs: Sequence[Any]) -> list[str]:
    """Return the names of the dynamic dimensions of the inputs, each once."""
    dims = (dim for value in inputs for dim in value.type.tensor_type.shape.dim)
    return list(dict.fromkeys(dim.dim_param for dim in dims if dim.dim_param))


def fix_shapes(model: Any, specs: Sequence[InputSpec]) -> list[str]:
    """Write the shapes into the network; returns which inputs had another one, as `input [1, 3, 224, 224]`."""
    import onnx

    fixed = []
    for value, spec in zip(inputs_of(model), specs, strict=True):
        shape = value.type.tensor_type.shape
        if [dim.dim_value for dim in shape.dim] != list(spec.shape) or not value.type.tensor_type.HasField("shape"):
            shape.CopyFrom(onnx.TensorShapeProto(dim=[{"dim_value": extent} for extent in spec.shape]))
            fixed.append(f"{spec.name} {list(spec.shape)}")
    if fixed:
        del model.graph.value_info[:]  # what an exporter wrote of shapes inside still has the open extents
    return fixed


def fix_inputs(model: Any, fixes: Fixes, shapes: Shapes) -> tuple[FixedInput, ...]:
    """Make inputs part of the network, with one number for all of their elements. Raises `ModelError`."""
    from onnx import numpy_helper

    graph, inputs = model.graph, {value.name: value for value in inputs_of(model)}
    fixed = []
    for name, number in fixes.items():
        if name not in inputs:
            hint = suggestion(name, inputs, otherwise="its inputs:")
            raise ModelError(f"the model has no input {name!r} to fix", hint=hint)
        fixed.append(FixedInput(_spec(inputs[name], shapes), number))
        array = fixed[-1].array()
        if not (array == number).all():
            raise ModelError(f"the input {name!r} holds {array.dtype}, which cannot be {number:.17g}")
        graph.initializer.append(numpy_helper.from_array(array, name))
    rest = [value for value in graph.input if value.name not in fixes]
    if fixed:
        del graph.input[:]
        graph.input.extend(rest)
        model.ir_version = max(model.ir_version, OLDEST_IR_VERSION)
    return tuple(fixed)


def _spec(value: Any, shapes: Shapes) -> InputSpec:
    _require_tensor(value)
    return InputSpec(value.name, _shape(value, shapes), _dtype(value).name)


def _require_tensor(value: Any) -> None:
    if not value.type.HasField("tensor_type"):
        raise ModelError(f"input {value.name!r} is not a tensor", hint="export the network with tensors as inputs")


def _require_elements(value: Any) -> None:
    declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim]
    if 0 in declared:
        raise ModelError(
            f"input {value.name!r} has the fixed shape {declared}, which holds nothing",
            hint="export it with an extent above 0, or remove the input",
        )


def _shape(value: Any, shapes: Shapes) -> tuple[int, ...]:
    tensor, override = value.type.tensor_type, shapes.get(value.name)
    declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if override is None:
        shape = _fill_extents(value, declared, shapes)
    elif isinstance(override, int) and len(declared) != 1:
        raise ModelError(f"input {value.name!r} is given one number", hint=_example(value, declared))
    else:
        shape = [override] if isinstance(override, int) else list(override)
    text = f"input {value.name!r} is given the shape {shape}"
    if not all(isinstance(extent, int) and extent > 0 for extent in shape):
        raise ModelError(text, hint="extents are whole numbers above 0")
    fits = len(shape) == len(declared) and all(d in (None, 0, s) for d, s in zip(declared, shape, strict=True))
    if tensor.HasField("shape") and not fits:
        fixed = "the file fixes it: leave --shape out, or export the network for this shape or with dynamic axes"
        hint = _example(value, declared) if None in declared else fixed
        raise ModelError(f"{text}, the model says {declared}", hint=hint)
    if math.prod(shape) * _dtype(value).itemsize > LARGEST_INPUT_BYTES:
        raise ModelError(f"{text}, which takes more than 4 GB", hint="no phone has room for it: give a smaller one")
    return tuple(shape)


def _fill_extents(value: Any, declared: Sequence[int | None], shapes: Shapes) -> list[int]:
    """Return the shape that the file declares, with its named extents filled in."""
    tensor, filled = value.type.tensor_type, []
    for extent, dim in zip(declared, tensor.shape.dim, strict=True):
        number = shapes.get(dim.dim_param) if dim.dim_param else extent
        if dim.dim_param and isinstance(number, int) and number < 1:
            raise ModelError(f"the extent {dim.dim_param!r} is given as {number}", hint="it is a whole number above 0")
        filled.append(number if isinstance(number, int) and number > 0 else 0)
    _require_elements(value)
    if not tensor.HasField("shape"):
        raise ModelError(f"input {value.name!r} has any number of axes", hint=_example(value, declared))
    if 0 in filled:
        names = (dim.dim_param or "?" for dim in tensor.shape.dim)
        text = ", ".join(name if extent is None else str(extent) for extent, name in zip(declared, names, strict=True))
        raise ModelError(f"input {value.name!r} has the dynamic shape [{text}]", hint=_example(value, declared))
    return filled


def _example(value: Any, declared: Sequence[int | None]) -> str:
    """Return how a shape is given, in both places: by its extents' names where it has them, as other inputs may."""
    wish = [d or (1 if i == 0 else 224) for i, d in enumerate(declared)] or [1, 3, 224, 224]
    dims = zip(value.type.tensor_type.shape.dim, wish, strict=False)
    named = {dim.dim_param: size for dim, size in dims if not dim.dim_value}
    own = named and all(name.isidentifier() and not name.startswith("unk__") for name in named)  # as tf2onnx writes
    sizes = named if own else {value.name: wish}
    on_line = " ".join(f"--shape {name}={'x'.join(map(str, np.ravel(size)))}" for name, size in sizes.items())
    in_suite = ", ".join(f'"{name}" = {size}' for name, size in sizes.items())
    return f"fix it with {on_line}, or in the suite with shapes = {{ {in_suite} }}"


def _dtype(value: Any) -> np.dtype[Any]:
    import onnx

    try:
        dtype: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    except KeyError:
        raise ModelError(f"input {value.name!r} has no number format", hint="export the network again") from None
    if dtype.kind not in "fiub":
        kind = "text" if dtype.kind == "O" else dtype
        raise ModelError(f"input {value.name!r} holds {kind}", hint="inputs are real numbers, integers or booleans")
    return dtype
