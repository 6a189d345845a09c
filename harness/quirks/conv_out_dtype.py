"""The texture path's convolution is always legalised with a float32 result."""

from __future__ import annotations

from typing import Any

from harness.compiler.compat import dtype_of, type_of
from harness.compiler.passes import Passes, replace_last
from harness.paths.workaround import Edits
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import conv, lowers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower a float16 convolution with TVM's own passes."""
    return lowers(conv(dtype="float16"), applied, "a float16 convolution")


def legalize(builder: Any, call: Any) -> Any:
    """A convolution in NCHW4c as TVM legalises it, with the result's own number format."""
    from tvm import topi

    return builder.call_te(
        topi.nn.conv2d_NCHWc_OIHWo,
        data=call.args[0],
        kernel=call.args[1],
        stride=call.attrs.strides,
        padding=call.attrs.padding,
        dilation=call.attrs.dilation,
        layout=call.attrs.data_layout,
        out_layout=call.attrs.out_layout,
        out_dtype=dtype_of(type_of(call)),
        primfunc_name_hint="conv2d_NCHWc_OIHWo",
    )


def legalize_with_out_dtype(passes: Passes) -> Passes:
    """The last `LegalizeOps` is the one for convolutions in NCHW4c."""
    from tvm import relax

    return replace_last(passes, "LegalizeOps", relax.transform.LegalizeOps({"relax.nn.conv2d": legalize}))


QUIRK = Quirk(
    id="texture-conv-out-dtype",
    title="float16 convolutions in NCHW4c are legalised with a float32 result and cannot be fused",
    upstream="python/tvm/relax/transform/legalize_ops/adreno/convolution.py: out_dtype is commented out",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="a legalisation of ours passes the result's number format on",
    edits=Edits(relax=legalize_with_out_dtype),
)
