"""An ONNX file, read with suspicion: it may come from anywhere.

Nothing outside its own folder is ever read, no size that it claims is believed before the bytes are seen to be there,
and every defect is one clear line. Memory stays at the file's own size: the checker, which copies what it is given,
sees the network without its weights (`harness.compile.models.outline`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from device_runner.files import what_else
from harness.base.failures import ModelError
from harness.base.tables import counted
from harness.compile.models.outline import all_graphs, check, inner_graphs

LARGEST_FILE_BYTES = (1 << 31) - 1
"""Largest protobuf message; a larger network keeps its weights in other files."""
LARGEST_MODEL_BYTES = LARGEST_FILE_BYTES
"""Largest model with its external data: the compiler reads it as one file."""

MOST_DENSE_BYTES = 1 << 28
"""Most bytes of a network's sparse tensors once they are dense: a file of 1 kB may claim any number."""
MOST_NODES = 200_000
"""Ten times those of the largest language models."""
DEEPEST_CALLS = 100

_GET_AGAIN = "get the file again"


def load(file: Path) -> Any:
    """Return the network, whole, checked and dense, with its external data brought in. Raises `ModelError`."""
    from harness.compile.models.preparation.order import sort_operators

    model = parse(file)
    bring_in_external_data(model, file)
    sort_operators(model)  # as onnxruntime does: some exporters leave them in disorder
    check(file, model)
    write_dense(model, file)
    return model


def parse(file: Path) -> Any:
    """Return the network as the file has it; external data stays where it is. Raises `ModelError`."""
    import onnx

    data = _bytes_of(file)
    if not data:
        raise ModelError(f"{file} is empty", hint=_GET_AGAIN)
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # protobuf has an exception of its own for each of its implementations
        # Every ONNX file begins with field 1, the version of the format, a small number.
        if data[0] == 0x08 and data[1:2] < b"\x20":
            raise ModelError(f"{file} is truncated or damaged", hint=_GET_AGAIN) from error
        if data.startswith(b"version https://git-lfs."):
            raise ModelError(f"{file} is a pointer of Git LFS", hint="get the network: `git lfs pull`") from error
        raise ModelError(f"{file} is not an ONNX file", hint="export the network as ONNX") from error
    del data  # a copy of all that the model holds
    if not model.ir_version or not model.HasField("graph"):
        raise ModelError(f"{file} is not an ONNX file", hint="export the network as ONNX")
    if not (model.graph.node and model.graph.output):
        without = "outputs" if model.graph.node else "operators"
        raise ModelError(f"{file} has no {without}", hint="export it with what it is to compute")
    if len({output.name for output in model.graph.output}) < len(model.graph.output):  # the checker takes them
        raise ModelError(f"{file} has two outputs with one name", hint="export it with a name for each")
    _require_bounded_functions(file, model)
    for tensor in tensors(model):
        if not is_external(tensor):
            _require_its_bytes(file, tensor)
    _open_negative_extents(model)
    return model


def _open_negative_extents(model: Any) -> None:
    """Leave open what a file gives the extent -1, as onnxruntime does: Paddle2ONNX writes that of a dynamic one."""
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.Clear()


class _Size(NamedTuple):
    """Size of nodes after their functions are inlined."""

    nodes: int
    length_bytes: int


def _require_bounded_functions(file: Path, model: Any) -> None:
    """Raise `ModelError` if the network is too large once its functions are inlined, which checking it does as well.

    Functions that call each other ten times each make 10^12 nodes of a file of 2 kB.
    """
    bodies = {(function.domain, function.name): function.node for function in model.functions}
    sizes: dict[tuple[str, str], _Size] = {}
    pending: list[tuple[str, str]] = []

    def size_of(nodes: Iterable[Any]) -> _Size:
        counts = [_Size(1, node.ByteSize()) for node in nodes]
        for node in nodes:
            counts += [size_of(inner.node) for inner in inner_graphs(node)]
            if (key := (node.domain, node.op_type)) in bodies:
                counts.append(size_of_function(key))
        return _Size(sum(size.nodes for size in counts), sum(size.length_bytes for size in counts))

    def size_of_function(key: tuple[str, str]) -> _Size:
        if key in pending or len(pending) > DEEPEST_CALLS:
            raise ModelError(f"{file}: the function {key[1]!r:.100} calls itself, or others too deep", hint=_GET_AGAIN)
        if key not in sizes:
            pending.append(key)
            sizes[key] = size_of(bodies[key])
            pending.pop()
        return sizes[key]

    size = size_of(model.graph.node) if bodies else _Size(0, 0)
    if size.nodes > MOST_NODES or size.length_bytes > LARGEST_MODEL_BYTES:
        raise ModelError(
            f"{file} has {size.nodes} operators in {size.length_bytes / 1e6:.0f} MB once its functions are inlined",
            hint=f"export it with fewer than {MOST_NODES} operators in 2 GB",
        )


def bring_in_external_data(model: Any, file: Path) -> int:
    """Load what is in other files of the model's folder; returns of how many tensors. Raises `ModelError`."""
    external = [tensor for tensor in tensors(model) if is_external(tensor)]
    if sum(_byte_length(file, tensor) for tensor in external) > LARGEST_MODEL_BYTES:
        raise ModelError(f"{file} with its external data is larger than 2 GB", hint="export it in half precision")
    for tensor in external:
        tensor.raw_data = _external_bytes(file, tensor)
        tensor.data_location = tensor.DEFAULT
        del tensor.external_data[:]
    return len(external)


def write_dense(model: Any, file: Path) -> str:
    """Write sparse weights and constants, which TVM's importer lacks, as dense ones. Raises `ModelError`."""
    from onnx import helper

    graphs = list(all_graphs(model.graph))
    attributes = [each for graph in graphs for node in graph.node for each in node.attribute]
    attributes = [each for each in attributes if each.HasField("sparse_tensor")]
    tensors = [*(each for graph in graphs for each in graph.sparse_initializer), *(a.sparse_tensor for a in attributes)]
    if (size := sum(8 * math.prod(each.dims) for each in tensors)) > MOST_DENSE_BYTES:
        problem = f"{file}: its sparse tensors take {size / 1e6:.0f} MB once they are dense"
        raise ModelError(problem, hint=f"export dense ones, or fewer than {MOST_DENSE_BYTES / 1e6:.0f} MB")
    for graph in graphs:
        graph.initializer.extend(map(_dense, graph.sparse_initializer))
        del graph.sparse_initializer[:]
    for attribute in attributes:
        attribute.CopyFrom(helper.make_attribute("value", _dense(attribute.sparse_tensor)))
    return f"wrote {counted(len(tensors), 'sparse tensor')} as dense" if tensors else ""


def _dense(sparse: Any) -> Any:
    """Return a tensor whose elements are 0 but for values at places: counted through, or a row of indices for each."""
    from onnx import numpy_helper

    values, places = map(numpy_helper.to_array, (sparse.values, sparse.indices))
    array = np.zeros(tuple(sparse.dims), values.dtype)
    array[tuple(places.T) if places.ndim > 1 else np.unravel_index(places, array.shape)] = values
    return numpy_helper.from_array(array, sparse.values.name)


def require_numbers(model: Any, file: Path) -> None:
    """Raise `ModelError` if a weight holds NaN: no answer could be judged.

    Infinity is a mask's usual value, and a NaN alone is what some networks put where a mask is.
    """
    from onnx import numpy_helper

    for tensor in model.graph.initializer:
        if tensor.data_type in (tensor.FLOAT, tensor.FLOAT16, tensor.DOUBLE):
            array = numpy_helper.to_array(tensor)
            if (bad := int(np.isnan(array).sum())) and array.size > 1:
                raise ModelError(
                    f"{file}: {bad} of {array.size} elements of the weight {tensor.name!r} are NaN",
                    hint="export it again from a network that was trained to the end",
                )


def is_external(tensor: Any) -> bool:
    """Return whether the tensor's data is in another file."""
    return bool(tensor.data_location == tensor.EXTERNAL)


def tensors(model: Any) -> Iterator[Any]:
    """Yield every tensor of a model: weights and attributes of the graph, inner graphs and functions."""
    for function in model.functions:
        yield from _node_tensors(function.node)
    yield from _graph_tensors(model.graph)


def _bytes_of(file: Path) -> bytes:
    if other := what_else(file):
        raise ModelError(f"{file} is {other}, not a file", hint="correct the model's path")
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise ModelError(f"{file} is larger than 2 GB", hint="save it with its weights as external data")
        return file.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{file} does not exist", hint="correct the model's path") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}") from error


def _external_bytes(file: Path, tensor: Any) -> bytes:
    """Return the bytes of a tensor in another file, which are as many as its shape says."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location, folder = entries.get("location", ""), file.parent.resolve()
    named = Path(os.path.normpath(folder / location))
    try:
        data_file = named.resolve()
        inside = any(data_file.is_relative_to(allowed) for allowed in (folder, *_cache_folder(folder)))
        there = data_file.is_file()
    except (ValueError, OSError, RuntimeError):  # a null character, a name too long, links in a circle
        data_file, inside, there = folder, True, False
    if not inside and named.is_relative_to(folder):
        raise ModelError(
            f"{file} keeps the data of {tensor.name!r} outside its own folder: {location!r} is a link to {data_file}",
            hint=f"links are followed within the model's folder only: `cp -rL {folder} COPY` makes files of them",
        )
    if not inside or not named.is_relative_to(folder):
        raise ModelError(
            f"{file} keeps the data of {tensor.name!r} outside its own folder, in {location!r:.200}",
            hint="put the data next to the model and save it again; other folders are never read",
        )
    if not there:
        raise ModelError(
            f"{file} keeps the data of {tensor.name!r} in {location!r:.200}, which is not there",
            hint="put that file next to the model",
        )
    length = _byte_length(file, tensor)
    try:
        offset, claimed = int(entries.get("offset") or 0), int(entries.get("length") or length)
        with data_file.open("rb") as stream:
            stream.seek(offset)
            data: bytes = stream.read(length)
    except (ValueError, OSError, OverflowError) as error:
        raise ModelError(f"{data_file} does not hold the data of {tensor.name!r}: {error}") from error
    if claimed != length or len(data) != length:
        has = min(claimed, len(data)) if len(data) < length else claimed
        raise ModelError(
            f"{data_file} does not hold the data of {tensor.name!r}: it has {has} bytes of {length}", hint=_GET_AGAIN
        )
    return data


def _cache_folder(folder: Path) -> list[Path]:
    """Return where the cache of huggingface_hub keeps the files of a model, whose folder holds links to them."""
    snapshots = next((parent for parent in folder.parents if parent.name == "snapshots"), None)
    blobs = snapshots.parent / "blobs" if snapshots else folder
    return [blobs] if snapshots and blobs.is_dir() and not blobs.is_symlink() else []


def _require_its_bytes(file: Path, tensor: Any) -> None:
    """Raise `ModelError` unless a tensor is as large as its shape says, so that nobody makes room for what is not."""
    length = _byte_length(file, tensor)
    if tensor.HasField("raw_data"):
        size = len(tensor.raw_data)
    elif tensor.data_type == tensor.STRING or not length:
        return
    else:  # each element of these fields is one number at least, or several small ones
        fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
        size = sum(map(len, fields)) * 16
    if size < length or (tensor.HasField("raw_data") and size != length):
        raise ModelError(
            f"{file}: {tensor.name or 'a constant'!r} has the shape {list(tensor.dims)!s:.100}, which takes {length} "
            f"bytes, and the file holds {size}",
            hint=_GET_AGAIN,
        )


def _byte_length(file: Path, tensor: Any) -> int:
    """Bytes that a tensor's shape and number format take, packed as ONNX packs numbers of less than a byte."""
    import onnx

    if any(extent < 0 for extent in tensor.dims):
        raise ModelError(f"{file}: {tensor.name!r} has the shape {list(tensor.dims)!s:.100}", hint=_GET_AGAIN)
    if tensor.data_type == tensor.STRING:
        return 0
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError, TypeError):
        raise ModelError(f"{file}: {tensor.name!r} has no number format", hint=_GET_AGAIN) from None
    return -(-int(math.prod(tensor.dims)) * _bits(dtype) // 8)


def _bits(dtype: Any) -> int:
    name = str(dtype.name)
    if name in ("int4", "uint4", "int2", "uint2"):
        return int(name[-1])
    return 4 if "float4" in name else 8 * int(dtype.itemsize)


def _graph_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            yield from [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]
            yield from (tensor for each in sparse for tensor in (each.values, each.indices))
        for inner in inner_graphs(node):
            yield from _graph_tensors(inner)
