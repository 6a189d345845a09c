"""Known defects of TVM that stand between a model and its measurement. One file each, registered in `QUIRKS`.

docs/quirks.md explains each.
"""

from __future__ import annotations

from harness.case import Precision
from harness.quirks import (
    conv_out_dtype,
    default_tir_pipeline,
    grouped_conv_layout,
    texel_schedule,
    texture_store,
    tir_pipeline_tuple,
    vectorized_alloc,
)
from harness.quirks.base import Answer, Quirk, State
from harness.tvm_compat import tvm_version

__all__ = ["QUIRKS", "Answer", "Quirk", "State", "quirks_for"]

QUIRKS: tuple[Quirk, ...] = (
    tir_pipeline_tuple.QUIRK,
    default_tir_pipeline.QUIRK,
    grouped_conv_layout.QUIRK,
    conv_out_dtype.QUIRK,
    texel_schedule.QUIRK,
    vectorized_alloc.QUIRK,
    texture_store.QUIRK,
)
"""In the order in which their work-rounds are applied."""


def quirks_for(path: str, precision: Precision, *, as_shipped: bool, tvm: str = "") -> tuple[Quirk, ...]:
    """The quirks that are worked round for a case, by TVM's version (the installed one unless told): no probe is run.

    `as_shipped` leaves only those without which nothing could run.
    """
    found = (quirk for quirk in QUIRKS if quirk.affects(tvm or tvm_version(), path, precision))
    return tuple(quirk for quirk in found if quirk.essential or not as_shipped)
