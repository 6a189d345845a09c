"""What goes to CLML and what stays, counted on the partitioned module: known at compile time and free of noise."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from harness.compile.compiler.compat import dtype_of, operator_name, relax, return_type, type_of
from harness.compile.paths.clml.codegen import shape_of, tensors_of
from harness.compile.paths.clml.offload_report import OffloadReport, RemainingOperators, Subgraph
from harness.compile.paths.clml.patterns import Refusals
from harness.compile.paths.lowered_module import bindings, calls_in, calls_of_functions

ATTRIBUTE = "adreno_bench.offload"
"""Under it a lowered module carries its own report, as JSON text."""

MACS_PER_BOUNDARY_BYTE = 32
"""Below this a subgraph may lose: its tensors are copied into CLML's layout and back, and a byte takes about as long to
read and write (30 GB/s) as 32 multiply-accumulates to do (500 G/s), on the Adreno parts of recent years. Whether small
subgraphs should be offloaded at all is the open question of TVM's RFC on CLML; measure it."""


def offload_of(module: Any) -> dict[str, Any] | None:
    """Return the report that a lowered module carries, None if no part of it could have been offloaded."""
    text = (module.attrs or {}).get(ATTRIBUTE)
    return json.loads(str(text)) if text is not None else None


def describe(mod: Any, refusals: Refusals, rooted: Iterable[str]) -> OffloadReport:
    """Return the report of a module whose partitions are made and not yet turned into code.

    `rooted` are the operators that some pattern ends in.
    """
    called = Counter(calls_of_functions(mod))
    partitions = ((str(var.name_hint), function) for var, function in mod.functions_items())
    subgraphs = tuple(
        _subgraph(name, function, called[name])
        for name, function in sorted(partitions)
        if function.attrs is not None and "Codegen" in function.attrs
    )
    outside = tuple(_outside(mod["main"], refusals, frozenset(rooted)))
    offloaded = sum(part.calls * part.operators for part in subgraphs)
    operators = offloaded + sum(left.count for left in outside)
    macs_offloaded = sum(part.calls * part.macs for part in subgraphs)
    macs = macs_offloaded + sum(left.macs for left in outside)
    return OffloadReport(
        subgraphs=subgraphs,
        outside=outside,
        operators=operators,
        operators_offloaded=offloaded,
        operator_share=round(offloaded / max(1, operators), 6),
        macs=macs,
        macs_offloaded=macs_offloaded,
        mac_share=round(macs_offloaded / max(1, macs), 6),
        boundary_bytes=sum(part.calls * part.boundary_bytes for part in subgraphs),
    )


def _subgraph(symbol: str, function: Any, calls: int) -> Subgraph:
    functions = {b.var: b.value for b in bindings(function) if isinstance(b.value, relax.Function)}
    composites = [functions[call.op] for call in calls_in(function)]
    inner = [call for composite in composites for call in calls_in(composite)]
    macs = sum(_macs(call) for call in inner)
    boundary = sum(_bytes(type_of(parameter)) for parameter in function.params) + _bytes(return_type(function))
    return Subgraph(
        symbol=symbol,
        calls=calls,
        composites=dict(sorted(Counter(str(c.attrs["Composite"]) for c in composites).items())),
        operators=len(inner),
        macs=macs,
        boundary_bytes=boundary,
        untunable=sum(_untunable(composite) for composite in composites),
        may_lose=macs < MACS_PER_BOUNDARY_BYTE * boundary,
        half='"float16"' in function.script(),
    )


def _untunable(composite: Any) -> bool:
    names = {operator_name(call) for call in calls_in(composite)}
    plain = names.isdisjoint(("relax.nn.relu", "relax.nn.batch_norm"))
    return plain and not names.isdisjoint(("relax.nn.conv2d", "relax.nn.conv2d_transpose"))


def _outside(main: Any, refusals: Refusals, rooted: frozenset[str]) -> Iterator[RemainingOperators]:
    counts: Counter[tuple[str, str]] = Counter()
    macs: Counter[tuple[str, str]] = Counter()
    for binding in bindings(main):
        if operator := operator_name(binding.value):
            key = operator, _why(operator, refusals.get(binding.var, []), rooted)
            counts[key] += 1
            macs[key] += _macs(binding.value)
    for (operator, why), count in sorted(counts.items()):
        yield RemainingOperators(operator, count, macs[operator, why], why)


def _why(operator: str, refused: list[tuple[str, str]], rooted: frozenset[str]) -> str:
    if not refused:
        if operator in rooted:
            return f"no pattern with {operator} fits its arguments"
        return f"no pattern ends in {operator}"
    by_whom: dict[str, list[str]] = {}
    for who, pattern in refused:
        by_whom.setdefault(who, []).append(pattern)
    return "; ".join(f"{who} refused {', '.join(dict.fromkeys(names))}" for who, names in by_whom.items())


def _macs(call: Any) -> int:
    """Multiply-accumulates of a convolution or a matrix product; nothing else is worth counting."""
    operator = operator_name(call)
    if operator == "relax.matmul":
        return _elements(type_of(call)) * shape_of(type_of(call.args[0]))[-1]
    if not operator.startswith("relax.nn.conv"):  # of one to three axes, and the transposed ones
        return 0
    weight = type_of(call.args[1])
    # Each output of a convolution, each input of a transposed one, meets all weights but those of other channels.
    channel, meets = ("I", type_of(call.args[0])) if operator.endswith("_transpose") else ("O", type_of(call))
    channels = shape_of(weight)[str(call.attrs.kernel_layout).index(channel)]
    return _elements(meets) * _elements(weight) // max(1, channels)


def _elements(tensor: Any) -> int:
    return math.prod(max(0, size) for size in shape_of(tensor))


def _bytes(kind: Any) -> int:
    import numpy as np

    return sum(_elements(tensor) * np.dtype(dtype_of(tensor)).itemsize for tensor in tensors_of(kind))
