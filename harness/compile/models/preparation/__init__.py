"""A network as TVM can compile it: each step is a file with one function, and says what it changed.

Exporters leave what inference does not need, and write what TVM's importer or one of the paths cannot read, where the
same network can be written otherwise. The answers stay the same. A model with `clean = false` in the suite is left as
it is, and the truth is always asked about the file as it was before (`harness.compile.oracle`).

The steps import ONNX. Import this package inside the function that needs it: no command loads ONNX when it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.compile.models.preparation.axes import count_axes_from_zero, count_parts_from_zero, write_slopes
from harness.compile.models.preparation.branches import lift_branches, take_constant_branches
from harness.compile.models.preparation.casts import (
    compute_in_single,
    look_before_casts,
    write_casts,
    write_casts_like,
    write_exponents_as_floats,
)
from harness.compile.models.preparation.constants import fold_constants, write_constants
from harness.compile.models.preparation.definitions import write_definitions
from harness.compile.models.preparation.empties import leave_out_empties
from harness.compile.models.preparation.fused import write_fused
from harness.compile.models.preparation.identities import remove_identities
from harness.compile.models.preparation.indices import (
    count_places_from_zero,
    write_folds,
    write_gathers,
    write_one_hots,
    write_pool_places,
    write_reversals,
    write_unpools,
)
from harness.compile.models.preparation.integers import write_integers_as_floats
from harness.compile.models.preparation.loops import unroll_loops
from harness.compile.models.preparation.opset import convert_opset, inline_functions, unlist_weights
from harness.compile.models.preparation.order import remove_unread
from harness.compile.models.preparation.padding import write_pad_axes, write_pads, write_repeats
from harness.compile.models.preparation.quantised import dequantise_weights, quantise_zeros, write_quantised_as_floats
from harness.compile.models.preparation.recurrent import unroll
from harness.compile.models.preparation.resizing import write_resizes
from harness.compile.models.preparation.spectra import write_spectra
from harness.compile.models.preparation.sums_and_ranks import write_cumulative_sums, write_top_k

_OPEN = (write_constants, remove_identities, fold_constants, take_constant_branches, unroll_loops, lift_branches)
"""Steps that replace branches and loops by what is in them. They run twice, since definitions have branches as well."""
STEPS: tuple[Callable[[Any], str], ...] = (
    inline_functions,
    write_fused,
    convert_opset,
    unlist_weights,
    *_OPEN,
    write_fused,  # in branches as well
    compute_in_single,
    write_definitions,
    *_OPEN,
    write_casts_like,
    write_quantised_as_floats,
    dequantise_weights,
    quantise_zeros,
    write_spectra,
    unroll,
    write_reversals,
    write_gathers,
    write_one_hots,
    write_unpools,
    write_folds,
    write_cumulative_sums,
    write_top_k,
    write_pad_axes,
    write_repeats,
    write_pads,
    write_pool_places,
    leave_out_empties,
    write_resizes,
    count_axes_from_zero,
    count_parts_from_zero,
    count_places_from_zero,
    write_slopes,
    look_before_casts,
    write_exponents_as_floats,
    write_integers_as_floats,
    write_casts,
    remove_unread,
)


def prepare(model: Any) -> list[str]:
    """Change the network in place; returns what was changed, a line for each kind of change. Raises `ModelError`."""
    return [change for step in STEPS if (change := step(model))]
