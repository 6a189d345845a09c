"""The code generator that the wheel lacks: from a partition to the JSON graph that TVM's CLML runtime reads.

The graph is the one of TVM's own C++ generator (apache/tvm src/relax/backend/contrib/clml/codegen.cc and
codegen_json/codegen_json.h), node by node, attribute by attribute and byte by byte, what is wrong in it included: what
is measured is TVM. docs/explanation/clml.md describes the format.

A convolution's inputs are data, weight, bias, gamma, beta, mean and variance; any other kernel's are arguments, then
constants. Attributes are those of all operators in the composite, then `shape`, `dtype`, `num_inputs`, `num_outputs`.
Booleans are 0 and 1, tuples are lists, an unset attribute is `""`. `padding` is top, left, bottom, right. A fused batch
norm is `"batchnorm": [axis, epsilon, center, scale]` as strings, epsilon with six decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from device_runner.runtimes import clml as clml_runtime
from device_runner.store import cache_root
from harness.compile.compiler.compat import (
    dtype_of,
    is_constant,
    is_tensor,
    name_of,
    operator_name,
    relax,
    tirx,
    tuple_fields,
    tvm,
    type_of,
)
from harness.compile.paths.lowered_module import bindings, calls_in

Entry = list[int]
"""`[node, output, 0]`, as it stands in the graph."""

_CONVOLUTIONS = ("nn.conv2d", "nn.pad_conv2d", "nn.pad_conv2d_transpose")
"""Endings of the composites whose inputs are put in order; those of all others are arguments, then constants."""


@dataclass(frozen=True)
class Partition:
    """One offloaded part of a network, ready for the runtime."""

    symbol: str
    graph: str
    """JSON text."""
    constants: tuple[str, ...]
    """Names of the constants, in the order of their nodes."""


def generate(functions: Any, _options: Any, constant_names: Any) -> list[Any]:
    """Return what `RunCodegen` calls as `relax.ext.openclml`: one module of kind `clml` for each partition."""
    create = tvm.get_global_func("runtime.clml_runtime_create")
    partitions = (partition(function, constant_names) for function in functions)
    return [create(part.symbol, part.graph, list(part.constants)) for part in partitions]


def partition(function: Any, constant_names: Mapping[Any, str]) -> Partition:
    """Write the graph of one partition. Raises TVM's `InternalError` where TVM's generator does."""
    writer = _Writer(constant_names)
    graph = writer.graph(function)
    # TVM's own writer of JSON text, so that numbers and escapes are printed as TVM prints them.
    text = str(tvm.get_global_func("ffi.json.Stringify")(graph, None))
    return Partition(str(function.attrs["global_symbol"]), text, tuple(writer.constants))


@dataclass
class _Writer:
    """Walks a partition in the order of its bindings, and adds a node for each input, constant and composite call."""

    names: Mapping[Any, str]
    nodes: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    """How many outputs each node has."""
    constants: list[str] = field(default_factory=list)
    entries: dict[Any, list[Entry]] = field(default_factory=dict)
    """What each variable and constant met so far stands for."""
    composites: dict[Any, Any] = field(default_factory=dict)
    """Functions by the local variable that holds them."""

    def graph(self, function: Any) -> dict[str, Any]:
        """Return the whole graph, in TVM's order of keys."""
        for parameter in function.params:
            self.entries[parameter] = self._add(parameter, "input", name_of(parameter))
        for binding in bindings(function):
            self._bind(binding)
        heads = self._value(function.body.body)
        row_ptr = [0]
        for count in self.outputs:
            row_ptr.append(row_ptr[-1] + count)
        leaves = [i for i, node in enumerate(self.nodes) if "inputs" not in node]
        return {"nodes": self.nodes, "arg_nodes": leaves, "heads": heads, "node_row_ptr": row_ptr}

    def _bind(self, binding: Any) -> None:
        if isinstance(binding, relax.MatchCast):
            raise _internal_error("JSON runtime currently doesn't match cast")
        if isinstance(binding.value, relax.Function):
            self.composites[binding.var] = binding.value
        else:
            self.entries[binding.var] = self._value(binding.value)

    def _value(self, value: Any) -> list[Entry]:
        if value in self.entries:
            return self.entries[value]
        if isinstance(value, relax.Call):
            return self._call(value)
        if isinstance(value, relax.Tuple):
            return [entry for item in value.fields for entry in self._value(item)]
        if isinstance(value, relax.TupleGetItem):
            return [self._value(value.tuple_value)[value.index]]
        if is_constant(value):
            name = str(self.names[value])
            self.constants.append(name)
            self.entries[value] = self._add(value, "const", name)
            return self.entries[value]
        if isinstance(value, relax.Var):
            # A weight that is no constant, or a bias on the left of its sum, is known inside the composite only.
            raise _internal_error("Check failed: (memo_.count(ffi::GetRef<Expr>(vn))) is false: ")
        raise _internal_error(f"JSON runtime currently doesn't support {type(value).__name__}")

    def _call(self, call: Any) -> list[Entry]:
        composite = self.composites[call.op]
        name = str(composite.attrs["Composite"])
        ordered = name.endswith(_CONVOLUTIONS)
        inputs, attributes = self._convolution(call, composite) if ordered else self._any(call, composite)
        return self._add(call, "kernel", name, inputs, attributes)

    def _convolution(self, call: Any, composite: Any) -> tuple[list[Entry], dict[str, Any]]:
        """Return data, weight, then bias and batch norm if there are any; the attributes of all."""
        calls = {name: inner for inner in reversed(list(calls_in(composite))) if (name := operator_name(inner))}
        conv = calls["relax.nn.conv2d" if "relax.nn.conv2d" in calls else "relax.nn.conv2d_transpose"]
        sources = [call.args[0], conv.args[1]]
        if "relax.add" in calls:
            sources.append(calls["relax.add"].args[1])
        if "relax.nn.batch_norm" in calls:
            sources += list(calls["relax.nn.batch_norm"].args)[1:5]
        inputs = [self._value(source)[0] for source in sources]
        attributes = _attributes(conv)
        if "relax.nn.batch_norm" in calls:
            norm = calls["relax.nn.batch_norm"].attrs
            attributes["batchnorm"] = [f"{norm.axis:d}", f"{norm.epsilon:f}", f"{norm.center:d}", f"{norm.scale:d}"]
        if "relax.nn.pad" in calls:
            before_after = [int(n) for n in calls["relax.nn.pad"].attrs.pad_width]
            del attributes["padding"]  # TVM's map puts what replaces a value at the end
            attributes["padding"] = [before_after[i] for i in (4, 6, 5, 7)]
        if "relax.nn.relu" in calls:
            attributes["activation_type"] = "relu"
        return inputs, attributes

    def _any(self, call: Any, composite: Any) -> tuple[list[Entry], dict[str, Any]]:
        """Arguments, then constants of the body; the attributes of all its operators."""
        constants, attributes = [], {}
        for inner in calls_in(composite):
            if operator_name(inner) == "relax.nn.relu":
                attributes["activation_type"] = "relu"
            for key, value in _attributes(inner).items():
                attributes.pop(key, None)
                attributes[key] = value
            constants += [entry for arg in inner.args if is_constant(arg) for entry in self._value(arg)]
        return [entry for arg in call.args for entry in self._value(arg)] + constants, attributes

    def _add(
        self,
        value: Any,
        kind: str,
        name: str,
        inputs: list[Entry] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> list[Entry]:
        tensors = tensors_of(type_of(value))
        attributes = {**(attributes or {}), "shape": [shape_of(t) for t in tensors], "dtype": [*map(dtype_of, tensors)]}
        node: dict[str, Any] = {"op": kind, "name": name}
        if inputs:
            attributes |= {"num_inputs": len(inputs), "num_outputs": len(tensors)}
            node["inputs"] = inputs
        index = len(self.nodes)
        self.nodes.append({**node, "attrs": attributes})
        self.outputs.append(len(tensors))
        return [[index, output, 0] for output in range(len(tensors))]


def tensors_of(kind: Any) -> list[Any]:
    """Return a tensor type as a list of one, a tuple type as its fields. Raises TVM's `InternalError` for others."""
    fields = tuple_fields(kind)
    tensors = [kind] if fields is None else list(fields)
    for tensor in tensors:
        if not is_tensor(tensor) or tensor.shape is None:
            raise _internal_error(f"Expect a tensor of known shape, but received: {tensor}")
    return tensors


def shape_of(tensor: Any) -> list[int]:
    """Return the sizes of a tensor's type; -1 stands for a size that is not known."""
    return [int(n) if isinstance(n, int | tirx.IntImm) else -1 for n in tensor.shape.values]


def _attributes(call: Any) -> dict[str, Any]:
    """Return the operator's attributes in the order of their declaration."""
    if call.attrs is None:
        return {}
    fields = type(call.attrs).__tvm_ffi_type_info__.fields
    return {f.name: _encode(getattr(call.attrs, f.name)) for f in fields}


def _encode(value: Any) -> Any:
    """Booleans are integers, nothing is an empty string, numbers of one list are of one kind, types are strings."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, tirx.IntImm | tirx.FloatImm):
        return value.value
    if value is None or str(value) == "void":  # the number format "void"
        return ""
    if type(value).__name__ == "Array":
        items = [_encode(item) for item in value]
        return [float(i) for i in items] if {type(i) for i in items} == {int, float} else items
    return str(value)


def _internal_error(message: str) -> Exception:
    return tvm.error.InternalError(message)  # type: ignore[no-any-return]


CODEGEN_ONLY_VERSION = 3
"""What a TVM answers for CLML's version that was built to generate code only (clml/codegen.cc)."""


def register(cache: Path | None = None) -> None:
    """After this, `tvm.relax.backend.adreno.clml.OpenCLMLOffLoad()` works in this process. May be called again.

    What the installed TVM has is used. What it lacks is added under TVM's own names: the code generator, and modules of
    kind `clml` from the library that `device_runner.runtimes.clml` builds once into `cache` (default: this project's
    cache folder). Raises `SetupMissing` if there is no C++ compiler for it, `RigFailure` if it does not compile.
    """
    import tvm_ffi

    import_module("tvm.relax.backend.adreno.clml")
    if tvm_ffi.get_global_func("relax.ext.openclml", allow_missing=True) is not None:
        return
    if clml_runtime.needed():
        clml_runtime.load(clml_runtime.library(cache or cache_root()))
    tvm_ffi.register_global_func("relax.ext.openclml", generate)
    tvm_ffi.register_global_func("relax.get_openclml_version", lambda: CODEGEN_ONLY_VERSION)
    tvm_ffi.register_global_func("relax.is_openclml_runtime_enabled", lambda: False)
