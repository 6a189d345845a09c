"""Known defects of TVM that stand between a model and its measurement. One file each, registered in `QUIRKS`.

docs/quirks.md explains each.
"""

from __future__ import annotations

from collections.abc import Collection

from device_runner.names import suggestion
from harness.cases.case import Precision
from harness.cases.request import QuirkPolicy
from harness.compiler.installed import tvm_version
from harness.failures import UsageError
from harness.quirks import (
    clml_batch_norm_flags,
    clml_bias_shape,
    clml_constant_left,
    clml_conv_transpose,
    clml_epsilon,
    clml_global_pool,
    clml_grouped_conv,
    clml_inner_result,
    clml_mixed_batch_norm,
    clml_not_imported,
    clml_number_format,
    clml_pad_conv,
    clml_pooling,
    clml_relu6,
    clml_runtime_name,
    clml_same_operand,
    clml_softmax_axis,
    clml_tensor_shape,
    clml_transpose_layout,
    clml_unplaced_operand,
    clml_untuned_conv,
    conv_out_dtype,
    default_tir_pipeline,
    dropout_layout,
    grouped_conv_layout,
    image_copy,
    input_name_in_kernel,
    reduction_epilogue,
    reduction_schedule,
    stack_layout,
    texel_reduction,
    texel_schedule,
    texture_store,
    tir_pipeline_tuple,
    transposed_conv_layout,
    tuner_builder_pipeline,
    tuner_global_infos,
    tuner_intrinsics,
    tuner_target,
    tuner_texel_stores,
    vectorized_alloc,
)
from harness.quirks.base import Presence, ProbeAnswer, Quirk

__all__ = ["QUIRKS", "ProbeAnswer", "Quirk", "Presence", "policy_of", "quirks_for", "quirks_of", "require_known"]

QUIRKS: tuple[Quirk, ...] = (
    tir_pipeline_tuple.QUIRK,
    default_tir_pipeline.QUIRK,
    input_name_in_kernel.QUIRK,
    dropout_layout.QUIRK,
    stack_layout.QUIRK,
    grouped_conv_layout.QUIRK,
    transposed_conv_layout.QUIRK,
    conv_out_dtype.QUIRK,
    image_copy.QUIRK,
    reduction_schedule.QUIRK,
    reduction_epilogue.QUIRK,
    texel_reduction.QUIRK,
    texel_schedule.QUIRK,
    vectorized_alloc.QUIRK,
    texture_store.QUIRK,
    clml_not_imported.QUIRK,
    clml_batch_norm_flags.QUIRK,
    clml_mixed_batch_norm.QUIRK,
    clml_relu6.QUIRK,
    clml_unplaced_operand.QUIRK,
    clml_number_format.QUIRK,
    clml_tensor_shape.QUIRK,
    clml_grouped_conv.QUIRK,
    clml_inner_result.QUIRK,
    clml_bias_shape.QUIRK,
    clml_pad_conv.QUIRK,
    clml_conv_transpose.QUIRK,
    clml_transpose_layout.QUIRK,
    clml_epsilon.QUIRK,
    clml_constant_left.QUIRK,
    clml_same_operand.QUIRK,
    clml_pooling.QUIRK,
    clml_global_pool.QUIRK,
    clml_softmax_axis.QUIRK,
    clml_untuned_conv.QUIRK,
    clml_runtime_name.QUIRK,
    tuner_texel_stores.QUIRK,
    tuner_builder_pipeline.QUIRK,
    tuner_global_infos.QUIRK,
    tuner_intrinsics.QUIRK,
    tuner_target.QUIRK,
)
"""In the order in which their workarounds are applied."""


def quirks_for(
    path: str, precision: Precision, *, as_shipped: bool, but_for: Collection[str] = (), tvm: str = ""
) -> tuple[Quirk, ...]:
    """The quirks that are worked around for a case, by TVM's version (default: the installed one). No probe is run.

    `as_shipped` leaves only those without which nothing could run, and those whose ids are in `but_for`.
    """
    found = (quirk for quirk in QUIRKS if quirk.affects(tvm or tvm_version(), path, precision))
    return tuple(quirk for quirk in found if not as_shipped or quirk.essential or quirk.id in but_for)


def quirks_of(ids: Collection[str]) -> tuple[Quirk, ...]:
    """The quirks of these ids, in the order in which their workarounds are applied."""
    return tuple(quirk for quirk in QUIRKS if quirk.id in ids)


def policy_of(as_shipped: bool, with_quirks: Collection[str] | None = None) -> QuirkPolicy:
    """Which defects are worked around, as a person asked for it.

    Raises UsageError for quirks that do not exist or that are worked around anyway.
    """
    require_known(with_quirks or ())
    if with_quirks and not as_shipped:
        raise UsageError("--with-quirk goes with --as-shipped", hint="without it all quirks are worked around")
    return QuirkPolicy(as_shipped, tuple(with_quirks or ()))


def require_known(ids: Collection[str]) -> None:
    """Raise UsageError for an id that no quirk has. One that the installed release is free of is no mistake."""
    known = [quirk.id for quirk in QUIRKS]
    for wrong in (one for one in ids if one not in known):
        raise UsageError(f"there is no quirk {wrong!r}", hint=suggestion(wrong, known))
