"""Operators on constants, which TVM compiles for the host one by one to compute them once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from device_runner.device import Array
from harness.compile.compiler.compat import array_of, dtype_of, is_constant, is_tensor, rebind_main, relax, type_of
from harness.compile.compiler.passes import Passes, insert_before_first, names_of, own_pass
from harness.compile.paths.base import Edits
from harness.compile.quirks.base import Quirk

_NUMPY = tuple(f"relax.{name}" for name in ("add", "subtract", "multiply", "divide", "sqrt", "isnan", "where"))
"""Operators whose result IEEE 754 prescribes to the last bit. numpy has them under the same names."""
_FLOATS = ("float32", "float16")
_RESHAPES = ("relax.expand_dims", "relax.reshape", "relax.squeeze")
_OPERATORS = (*_NUMPY, *_RESHAPES, "relax.astype", "relax.layout_transform")
_INDICES: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
}
"""What the indices of layouts are made of, by the names of TVM's classes."""


def compute_constants(passes: Passes) -> Passes:
    """Compute operators on constants with numpy, before TVM legalises or folds the first."""
    first = next(name for name in names_of(passes) if name in ("FoldConstant", "LegalizeOps"))
    return insert_before_first(passes, first, own_pass("ComputeConstants", _with_constants_computed))


def _with_constants_computed(mod: Any) -> Any:
    """Bind variables to what TVM would compute, bit by bit. `FoldConstant` then takes the variables out."""
    arrays = dict[Any, Any]()

    def bind(binding: Any) -> Any:
        result = _computed(binding, arrays)
        if result is None:
            return binding
        arrays[binding.var] = result
        return relax.VarBinding(binding.var, relax.const(result, result.dtype.name))  # else int32 of int64

    changed = rebind_main(mod, bind)
    return changed if arrays else mod


def _computed(binding: Any, arrays: Mapping[Any, Array]) -> Array | None:
    """Return what a variable is bound to if it can be computed from constants and from what was computed of them."""
    import numpy as np

    call, kind = binding.value, type_of(binding.var)
    if getattr(getattr(call, "op", None), "name", "") not in _OPERATORS:
        return None  # before its weights are copied
    shape = getattr(getattr(kind, "shape", None), "values", None)
    operands = [_array(argument, arrays) for argument in call.args if not hasattr(argument, "values")]
    if shape is None or not operands or any(array is None for array in operands):
        return None
    extents = [getattr(extent, "value", -1) for extent in shape]
    with np.errstate(all="ignore"):
        result = _apply(call, [array for array in operands if array is not None], extents)
    fits = result is not None and list(result.shape) == extents and result.dtype.name == dtype_of(kind)
    return np.asarray(result, order="C") if fits else None


def _array(argument: Any, arrays: Mapping[Any, Array]) -> Array | None:
    """Return the numbers of a constant, of a variable that has been computed, or of a plain number."""
    import numpy as np

    if is_tensor(type_of(argument)):
        array: Array | None = array_of(argument) if is_constant(argument) else arrays.get(argument)
        return array
    return np.asarray(argument.value, dtype_of(type_of(argument))) if hasattr(argument, "value") else None


def _apply(call: Any, operands: list[Array], extents: list[int]) -> Array | None:
    """Return the result of an operator; None for one that is left to TVM."""
    import numpy as np

    data = operands[0]
    name, floats = call.op.name, all(array.dtype in _FLOATS for array in operands)
    if name in _NUMPY and (floats or name == "relax.where"):
        return np.asarray(getattr(np, name.removeprefix("relax."))(*operands))
    if name == "relax.astype" and floats and call.attrs.dtype in _FLOATS:
        return data.astype(str(call.attrs.dtype))
    if name in _RESHAPES and data.size == prod(extents):
        return data.reshape(extents)
    if name == "relax.layout_transform" and data.size == prod(extents):
        return _transform(data, call.attrs.index_map, extents)
    return None


def _transform(data: Array, index_map: Any, extents: list[int]) -> Array | None:
    """Lay out a tensor anew: each element goes where the map has it, which is one to one as no place is left over."""
    import numpy as np

    axes = np.ogrid[tuple(map(slice, data.shape))]
    places = dict(zip(index_map.initial_indices, axes, strict=True))
    result = np.empty(extents, data.dtype)
    try:
        result[tuple(_place(index, places) for index in index_map.final_indices)] = data
    except KeyError:  # an index of another kind: left to TVM
        return None
    return result


def _place(index: Any, places: Mapping[Any, Any]) -> Any:
    """Compute an index of the new layout for all elements at once. Raises KeyError for another kind."""
    if index in places:
        return places[index]
    if hasattr(index, "value"):
        return int(index.value)
    return _INDICES[type(index).__name__](_place(index.a, places), _place(index.b, places))


QUIRKS = (
    Quirk(
        "constants-compiled",
        "each operator on constants, such as those of a batch norm, is compiled for the host to run once: two thirds "
        "of the time of a build",
        upstream="src/relax/transform/fold_constant.cc: GetCachedBuild keeps a function under another key than it "
        "looks for, so that it compiles each anew",
        workaround="operators whose results numpy computes to the same bits are computed by it",
        edits=Edits(relax=compute_constants),
    ),
)
