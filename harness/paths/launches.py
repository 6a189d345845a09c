"""How often one inference launches each kernel, and with how many threads, from the TIR that it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from harness.compiler.statements import walk
from harness.paths.lowered import calls_of_functions

_LAUNCH_PARAMETERS = "kernel_launch_params"
"""Ends the name of the attribute that only a kernel has; its name space moved between releases."""


@dataclass(frozen=True)
class Launch:
    """One kernel of a network."""

    threads: int | None
    """Work items of one launch; None if an extent is no constant."""
    group: int | None
    """Work items of one work group; None if an extent is no constant."""
    per_inference: int
    """How often one inference launches it."""


def launches(lowered: Any, tir: Any) -> dict[str, Launch]:
    """The kernels by name. `lowered` is the module after all Relax passes, `tir` the one after all TIR passes."""
    functions = {str(name.name_hint): function for name, function in tir.functions_items()}
    kernels = {name for name, function in functions.items() if _is_kernel(function)}
    calls = Counter(calls_of_functions(lowered))
    times: Counter[str] = Counter()
    for name in calls.keys() & functions.keys() - kernels:
        for launched in _launched(functions[name], kernels):
            times[launched] += calls[name]
    return {name: _launch(_extents(functions[name]), times[name]) for name in sorted(kernels)}


def _launch(extents: Mapping[str, int | None], times: int) -> Launch:
    everything = list(extents.values())
    group = [extent for tag, extent in extents.items() if tag.startswith("threadIdx")]
    return Launch(_product(everything), _product(group), times)


def _product(extents: list[int | None]) -> int | None:
    known = [extent for extent in extents if extent is not None]
    return prod(known) if len(known) == len(extents) else None


def _is_kernel(function: Any) -> bool:
    return any(str(name).endswith(_LAUNCH_PARAMETERS) for name in dict(function.attrs or {}))


def _extents(kernel: Any) -> dict[str, int | None]:
    """Extents by thread axis, `blockIdx.x` and the like; None for one that is no constant."""
    attributes = (part for part in walk(kernel.body) if getattr(part, "attr_key", "") == "thread_extent")
    return {str(part.node.thread_tag): _constant(part.value) for part in attributes}


def _constant(expression: Any) -> int | None:
    value = getattr(expression, "value", None)
    return value if isinstance(value, int) else None


def _launched(function: Any, kernels: set[str]) -> Iterator[str]:
    """The kernels that a host function launches, as often as it does: it names each in a call."""
    for part in walk(function.body):
        for argument in getattr(getattr(part, "value", None), "args", ()):
            if (name := getattr(argument, "value", None)) in kernels:
                yield str(name)
