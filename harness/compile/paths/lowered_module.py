"""Reads and completes an IRModule that went through all passes: its entries, its facts, its launches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from harness.base.failures import CompileFailure, UnsupportedOperator
from harness.compile.compiler.compat import (
    call_packed,
    name_of,
    operator_name,
    relax,
    return_type,
    tensor_type,
    tirx,
    tuple_fields,
    tvm,
    type_of,
)
from harness.compile.compiler.tir import unbound_blocks, walk
from harness.compile.paths.base import BuiltModule, PathFacts
from harness.compile.paths.kernels import kernels

ENTRY = "main"
_OPERATORS = {"multiply": "Mul", "subtract": "Sub", "divide": "Div", "power": "Pow"}
"""ONNX's names for TVM's, where they differ in more than the first letter."""
_PHRASES = {"max_pool": "MaxPool", "avg_pool": "AveragePool", "scatter_elements": "ScatterElements"}
_SORTS_AND_SCANS = {
    "relax.topk": "TopK",
    "relax.sort": "a sort",
    "relax.argsort": "an argsort",
    "relax.cumsum": "CumSum",
    "relax.cumprod": "a cumulative product",
}
"""Operators of TVM that it does not legalise: a pass of a target's pipeline has to know them."""
_NO_OPERATOR = ("fused", "tir", "NCHWc", "OIHWo", "opencl")
"""Parts of a function's name that say where an operator comes from and how its tensors lie."""
HOST_ENTRY = "main_to_host"
_DL_CPU = 1
TEXTURE = "global.texture"
"""Begins the names of the scopes of images."""


def add_host_entry(mod: Any) -> Any:
    """Add `main_to_host`: `main`, then its outputs copied to host memory, which waits for the device.

    With it the device's own clock measures the time to an answer, without a round trip to the host.

    Raises CompileFailure if an output is no tensor (0.27 imports ONNX's Shape so).
    """
    return with_caller(mod, HOST_ENTRY, to_host)


def with_caller(mod: Any, name: str, change: Callable[[Any, Any], Any] = lambda _, output: output) -> Any:
    """Add a function that calls `main` and returns what `change` makes of its output in a block builder."""
    params = [relax.Var(name_of(param), type_of(param)) for param in mod[ENTRY].params]
    builder = relax.BlockBuilder(mod)
    with builder.function(name, params, attrs={"global_symbol": name, "relax.force_pure": True}):
        output = builder.emit(relax.Call(mod.get_global_var(ENTRY), params))
        builder.emit_func_output(change(builder, output))
    return builder.get()


def to_host(builder: Any, value: Any) -> Any:
    """Copy a tensor, or each of a tuple, to host memory. Raises CompileFailure if one is no tensor."""
    kind = type_of(value)
    if (fields := tuple_fields(kind)) is not None:
        items = [builder.emit(relax.TupleGetItem(value, i)) for i in range(len(fields))]
        return relax.Tuple([to_host(builder, item) for item in items])
    if not hasattr(kind, "shape"):
        raise CompileFailure(f"an output is {kind} in TVM, not a tensor")
    on_host = tensor_type(kind.shape, kind.dtype)
    return builder.emit(call_packed("vm.builtin.to_device", value, _DL_CPU, 0, result=on_host))


def require_threads(mod: Any, path: str) -> None:
    """Check that threads of the device run every block.

    Raises CompileFailure: TVM would run the block on the host, which dies of the device's memory.
    """
    for variable, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc) and (blocks := unbound_blocks(function)):
            name = str(variable.name_hint)
            raise CompileFailure(
                f"the {path} path has no schedule for this fused kernel ({', '.join(fused_operators(name))})",
                hint="`adreno-bench quirks` lists the schedules that are worked around",
                evidence=f"no thread runs {', '.join(blocks)} of {name}:\n{function.script()}",
            )


def require_dispatch(mod: Any) -> None:
    """Raise UnsupportedOperator for a sort or a scan that no pass of TVM's pipeline has given a kernel."""
    if names := [name for operator, name in _SORTS_AND_SCANS.items() if _calls(mod, operator)]:
        raise UnsupportedOperator(
            f"TVM's pipeline for Adreno has no kernel for {', '.join(names)}",
            hint="rewritten in ONNX files: CumSum of up to 4096, sorted TopK of a fixed k up to 2048",
        )


def fused_operators(name: str) -> list[str]:
    """Return the operators of a compiled function, as its name has them: `fused_conv2d1_add` is Conv and Add."""
    for phrase, operator in _PHRASES.items():
        name = name.replace(phrase, operator)
    words = [re.sub(r"(2d)?\d*$", "", word) for word in name.split("_")]
    return [_OPERATORS.get(word, word[:1].upper() + word[1:]) for word in words if word and word not in _NO_OPERATOR]


def vdevices(mod: Any) -> int:
    """Return how many virtual devices the VM must be initialised with."""
    return max(1, len(memory_scopes(mod)))


def outputs(mod: Any) -> int:
    """Return how many tensors `main` returns."""
    fields = tuple_fields(return_type(mod[ENTRY]))
    return 1 if fields is None else len(fields)


def path_facts(built: BuiltModule) -> PathFacts:
    """Return the noise-free numbers, from the lowered module and the source."""
    mod, code = built.module, list(kernels(built.source))
    scopes = memory_scopes(mod)
    tensors = [(call.args[2], int(call.args[-1].value)) for call in _calls(mod, "relax.vm.alloc_tensor")]
    placed = [(shape, scopes[number] if number < len(scopes) else "") for shape, number in tensors]
    images = [image_size(_extents_of(shape), scope) for shape, scope in placed if scope.startswith(TEXTURE)]
    sizes = (_extents_of(call.args[0]) for call in _calls(mod, "relax.vm.alloc_storage"))
    return PathFacts(
        kernels=len(code),
        image_kernels=sum(bool(kernel.images) for kernel in code),
        half_kernels=sum(kernel.half for kernel in code),
        double_kernels=sum(kernel.double for kernel in code),
        source_bytes=len(built.source.encode()),
        calls=len(calls_of_functions(mod)),
        texture_tensors=len(images),
        image_side=max((side for image in images for side in image[:2]), default=0),
        image_layers=max((layers for _, _, layers in images), default=0),
        buffer_tensors=len(tensors) - len(images),
        storage_bytes=sum(size[0] for size in sizes if size),
    )


def _extents_of(shape: Any) -> list[int]:
    """Return 0 for one that is computed on the way, as that of what a Compress leaves."""
    return [int(getattr(extent, "value", 0)) for extent in getattr(shape, "values", None) or ()]


def image_size(extents: Sequence[int], scope: str) -> tuple[int, int, int]:
    """Width and height in pixels, and layers, of the image that a tensor lies in (apache/tvm texture.h)."""
    rows = {f"{TEXTURE}-weight": 1, f"{TEXTURE}-nhwc": 2}.get(scope, len(extents) - 2)
    return prod(extents[rows:-1]), prod(extents[max(rows - 1, 0) : rows]), prod(extents[: max(rows - 1, 0)])


def memory_scopes(mod: Any) -> list[str]:
    """Memory scopes of tensors, by their number in the lowered module."""
    return [str(device.memory_scope) for device in mod.global_infos.get("vdevice", [])]


def calls_of_functions(mod: Any) -> list[str]:
    """List the compiled functions that `main` calls, in its order and as often as it does."""
    return [str(call.op.name_hint) for call in calls_in(mod[ENTRY]) if isinstance(call.op, tvm.ir.GlobalVar)]


def bindings(function: Any) -> Iterator[Any]:
    """Yield the bindings of a function in order."""
    for block in function.body.blocks:
        yield from block.bindings


def calls_in(function: Any) -> Iterator[Any]:
    """Yield the calls that a function binds, in order."""
    return (binding.value for binding in bindings(function) if isinstance(binding.value, relax.Call))


def _calls(mod: Any, operator: str) -> list[Any]:
    """Return the calls of an operator in `main`."""
    return [call for call in calls_in(mod[ENTRY]) if operator_name(call) == operator]


_LAUNCH_PARAMETERS = "kernel_launch_params"
"""Ends the name of the attribute that only a kernel has; its name space moved between releases."""


@dataclass(frozen=True)
class PlannedLaunch:
    """One kernel of a network."""

    threads: int | None
    """Work items of one launch; None if an extent is no constant, and of a language model's."""
    group: int | None
    """Work items of one work group; None likewise."""
    per_inference: int | None
    """How often one inference launches it; None in a library whose steps are not counted, as a language model's."""
    local_bytes: int = 0
    """Local memory of one work group."""


def launches(module: Any, tir: Any, source: str) -> dict[str, PlannedLaunch]:
    """Return the kernels by name.

    Args:
        module: The one after all Relax passes.
        tir: The one after all TIR passes.
        source: OpenCL C of the kernels.
    """
    local_bytes = {kernel.name: kernel.local_bytes for kernel in kernels(source)}
    functions = {str(name.name_hint): function for name, function in tir.functions_items()}
    on_device = {name for name, function in functions.items() if _is_kernel(function)}
    calls = Counter(calls_of_functions(module))
    times: Counter[str] = Counter()
    for name in calls.keys() & functions.keys() - on_device:
        for launched in _launched_kernels(functions[name], on_device):
            times[launched] += calls[name]
    return {
        name: _launch(_extents(functions[name]), times[name], local_bytes.get(name, 0)) for name in sorted(on_device)
    }


def _launch(extents: Mapping[str, int | None], times: int, local_bytes: int) -> PlannedLaunch:
    everything = list(extents.values())
    group = [extent for tag, extent in extents.items() if tag.startswith("threadIdx")]
    return PlannedLaunch(_product(everything), _product(group), times, local_bytes)


def _product(extents: list[int | None]) -> int | None:
    numbers = [extent for extent in extents if extent is not None]
    return prod(numbers) if len(numbers) == len(extents) else None


def _is_kernel(function: Any) -> bool:
    return any(str(name).endswith(_LAUNCH_PARAMETERS) for name in dict(function.attrs or {}))


def _extents(kernel: Any) -> dict[str, int | None]:
    """Extents by thread axis, `blockIdx.x` and the like; None for one that is no constant."""
    attributes = (part for part in walk(kernel.body) if getattr(part, "attr_key", "") == "thread_extent")
    return {str(part.node.thread_tag): _constant(part.value) for part in attributes}


def _constant(expression: Any) -> int | None:
    value = getattr(expression, "value", None)
    return value if isinstance(value, int) else None


def _launched_kernels(function: Any, kernels: set[str]) -> Iterator[str]:
    """Yield the kernels that a host function launches, as often as it does: it names each in a call."""
    for part in walk(function.body):
        for argument in getattr(getattr(part, "value", None), "args", ()):
            if (name := getattr(argument, "value", None)) in kernels:
                yield str(name)
