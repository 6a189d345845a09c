"""A user's own `.onnx` file: read with suspicion, turned into one self-contained file with static shapes known.

The file may come from anywhere, so nothing outside its own folder is ever read, and every defect is one clear line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from device_runner.files import what_else, write_whole
from device_runner.names import suggestion
from harness.failures import ModelError
from harness.models.given_inputs import load_inputs
from harness.models.spec import InputSpec

Shapes = Mapping[str, Sequence[int]]
"""Static shapes by input name, as the suite gives them."""


@dataclass(frozen=True)
class OnnxFile:
    """A model that the suite names by the path of its file."""

    name: str
    file: Path
    shapes: Shapes = field(default_factory=dict)
    inputs: Path | None = None
    """File of the inputs that it is run on; seeded ones if there is none."""

    def onnx_file(self, cache_dir: Path) -> Path:
        """The file itself, or a copy in `cache_dir` with its external data inside. Raises `ModelError`."""
        model = load(self.file)
        specs = input_specs(model, self.shapes)
        if self.inputs:
            load_inputs(self.inputs, specs)
        if not _inline_external_data(model, self.file):
            return self.file
        _check(self.file, model)
        try:
            data: bytes = model.SerializeToString(deterministic=True)
        except Exception as error:  # protobuf has an exception of its own for each of its implementations
            raise ModelError(f"{self.file} with its external data is too large for one file: {error}") from error
        return write_whole(cache_dir / f"{self.name}-{hashlib.sha256(data).hexdigest()[:12]}.onnx", data)


def load(file: Path) -> Any:
    """Parse and check an ONNX file; external data stays where it is. Raises `ModelError`."""
    if other := what_else(file):
        raise ModelError(f"{file} is {other}, not a file", hint="correct the model's path in the suite")
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{file} does not exist", hint="correct the model's path in the suite") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}") from error
    model = _parse(file, data)
    if not _external_tensors(model):  # the checker would look for them in the working directory
        _check(file, model)
    return model


def input_specs(model: Any, shapes: Shapes) -> tuple[InputSpec, ...]:
    """The inputs that a caller must fill, with `shapes` in place of what the file leaves open. Raises `ModelError`."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    names = [value.name for value in inputs]
    for name in shapes:
        if name not in names:
            hint = suggestion(name, names, otherwise="its inputs:")
            raise ModelError(f"the model has no input {name!r}", hint=hint)
    return tuple(_input_spec(value, shapes.get(value.name)) for value in inputs)


def _parse(file: Path, data: bytes) -> Any:
    import onnx

    if not data:
        raise ModelError(f"{file} is empty")
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # protobuf has an exception of its own for each of its implementations
        # Every ONNX file begins with field 1, the version of the format, a small number.
        if data[0] == 0x08 and data[1:2] < b"\x20":
            raise ModelError(f"{file} is truncated or damaged", hint="get the file again") from error
        raise ModelError(f"{file} is not an ONNX file") from error
    if not model.ir_version or not model.graph.node:
        raise ModelError(f"{file} is not an ONNX file")
    return model


def _check(file: Path, model: Any) -> None:
    import onnx

    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise ModelError(f"{file} is not a valid ONNX model: {_first_line(error)}", evidence=str(error)) from error


def _input_spec(value: Any, given: Sequence[int] | None) -> InputSpec:
    import onnx

    if not value.type.HasField("tensor_type"):
        raise ModelError(f"input {value.name!r} is not a tensor")
    tensor = value.type.tensor_type
    declared = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    known = tensor.HasField("shape")
    shape = tuple(given) if given is not None else tuple(d or 0 for d in declared)
    if given is None and (not known or not all(d and d > 0 for d in declared)):
        text = ", ".join(str(d or dim.dim_param or "?") for d, dim in zip(declared, tensor.shape.dim, strict=True))
        wish = [d or (1 if i == 0 else 224) for i, d in enumerate(declared)] or [1, 3, 224, 224]
        raise ModelError(
            f"input {value.name!r} has the dynamic shape [{text}]",
            hint=f'fix it in the suite, for example shapes = {{ "{value.name}" = {wish} }}',
        )
    if not all(isinstance(d, int) and d > 0 for d in shape):
        raise ModelError(
            f"input {value.name!r} is given the shape {list(shape)}", hint="sizes are whole numbers above 0"
        )
    if known and (len(shape) != len(declared) or any(d and d != s for d, s in zip(declared, shape, strict=True))):
        raise ModelError(f"input {value.name!r} is given the shape {list(shape)}, the model says {declared}")
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    except KeyError:
        raise ModelError(f"input {value.name!r} has no number format") from None
    if dtype.kind not in "fiub":
        raise ModelError(f"input {value.name!r} holds {dtype}", hint="inputs are real numbers, integers or booleans")
    return InputSpec(value.name, shape, dtype.name)


def _inline_external_data(model: Any, file: Path) -> bool:
    """Load what is in other files of the model's folder; returns whether there was any. Raises `ModelError`."""
    from onnx import external_data_helper, numpy_helper

    external = _external_tensors(model)
    folder = file.parent.resolve()
    for tensor in external:
        location = external_data_helper.ExternalDataInfo(tensor).location
        data_file = (folder / location).resolve()
        if not data_file.is_relative_to(folder):
            raise ModelError(
                f"{file} keeps the data of {tensor.name!r} outside its own folder, in {location!r}",
                hint="put the data next to the model and save it again; other folders are never read",
            )
        if not data_file.is_file():
            raise ModelError(f"{file} keeps the data of {tensor.name!r} in {location!r}, which is not there")
        try:
            external_data_helper.load_external_data_for_tensor(tensor, str(folder))
            tensor.data_location = tensor.DEFAULT
            del tensor.external_data[:]
            numpy_helper.to_array(tensor)  # fails if there are too few bytes, or too many
        except (ValueError, OSError, RuntimeError) as error:
            raise ModelError(f"{data_file} does not hold the data of {tensor.name!r}: {_first_line(error)}") from error
    return bool(external)


def _external_tensors(model: Any) -> list[Any]:
    from onnx import external_data_helper

    return [tensor for tensor in _tensors(model) if external_data_helper.uses_external_data(tensor)]


def _tensors(model: Any) -> Iterator[Any]:
    """Every tensor that a model carries: weights and attributes, of the graph, its inner graphs and its functions."""
    for function in model.functions:
        yield from _node_tensors(function.node)
    yield from _graph_tensors(model.graph)


def _graph_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Any) -> Iterator[Any]:
    for attribute in (a for node in nodes for a in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            yield from _graph_tensors(inner)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
