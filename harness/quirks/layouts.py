"""Layouts of the texture path that an operator cannot be legalised in, or that a tensor cannot be copied between."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from harness.compiler.compat import dtype_of, rewrite_main, type_of
from harness.compiler.passes import Passes, insert_before, replace_last
from harness.paths.base import Edits, Layouts, Workaround
from harness.paths.lowered_module import memory_scopes
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import conv, fails_to_lower, lower, max_pool_into_smaller_image, transposed_conv

_CONV = "relax.nn.conv2d"
_TRANSPOSED = "relax.nn.conv2d_transpose"
_BUFFER = "global"


def plain_if_grouped(call: Any) -> Layouts:
    """NCHW for convolutions with more than one group."""
    grouped = call.op.name == _CONV and call.attrs.groups > 1
    return {_CONV: ["NCHW", "OIHW", "NCHW"]} if grouped else {}


def plain_if_transposed(call: Any) -> Layouts:
    """NCHW for transposed convolutions."""
    return {_TRANSPOSED: ["NCHW", "IOHW", "NCHW"]} if call.op.name == _TRANSPOSED else {}


def legalize(builder: Any, call: Any) -> Any:
    """Return a convolution in NCHW4c as TVM legalises it, with the result's own number format."""
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
    """Replace the last `LegalizeOps`, which is the one for convolutions in NCHW4c."""
    from tvm import relax

    return replace_last(passes, "LegalizeOps", relax.transform.LegalizeOps({_CONV: legalize}))


def _copied_between_images(*applied: Workaround) -> ProbeAnswer:
    """Look in the lowered module for a copy from one layout of images to another."""
    copies = list(_copies(lower(max_pool_into_smaller_image(), applied)))
    bad = next((" to ".join(scopes) for scopes in copies if _reorders(*scopes)), "")
    none = f"{len(copies)} copies of a max pool's result, none from image to image"
    return ProbeAnswer.of(bool(bad), f"the result of a max pool is copied from {bad}", none)


def _copies(mod: Any) -> Iterator[tuple[str, str]]:
    """Scopes of source and target of each copy in a lowered `main`."""
    scopes = memory_scopes(mod)
    lies_in: dict[Any, str] = {}
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            op = getattr(call, "op", None)
            if getattr(op, "name", "") == "relax.vm.alloc_tensor":
                lies_in[binding.var] = scopes[int(call.args[-1].value)]
            elif getattr(op, "global_symbol", "") == "vm.builtin.to_device":
                lies_in[binding.var] = str(call.args[-1].value)
                yield lies_in.get(call.args[0], ""), lies_in[binding.var]


def copy_through_buffers(passes: Passes) -> Passes:
    """Before kernels are made for the scopes of their arguments, put a buffer between the images of a copy."""
    import tvm

    made = tvm.transform.module_pass(_through_buffers, opt_level=0, name="adreno_bench.CopyThroughBuffers")
    return insert_before(passes, "SpecializePrimFuncBasedOnCallSite", made)


def _through_buffers(mod: Any, _context: Any) -> Any:
    from tvm import relax
    from tvm.relax.dpl import is_op, wildcard

    data = wildcard()

    def replace(call: Any, matched: Any) -> Any:
        source, target = type_of(matched[data]).vdevice, call.attrs.dst_vdevice
        if not source or not _reorders(str(source.memory_scope), str(target.memory_scope)):
            return call
        buffer = type(target)(target.target, int(target.vdevice_id), _BUFFER)
        return relax.op.to_vdevice(relax.op.to_vdevice(matched[data], buffer), target)

    return relax.transform.Normalize()(rewrite_main(mod, is_op("relax.to_vdevice")(data), replace))


def _reorders(source: str, target: str) -> bool:
    """Return whether both are images, in which TVM lays out the same tensor differently."""
    return "texture" in source and "texture" in target and source != target


QUIRKS = (
    Quirk(
        "grouped-conv-nchw4c",
        "depthwise and grouped convolutions are converted to NCHW4c, and legalising them divides by zero",
        upstream="python/tvm/topi/nn/conv2d.py: conv2d_NCHWc_OIHWo; the conversion is in "
        "relax/backend/adreno/pipeline.py",
        workaround="convolutions with more than one group stay in NCHW, on buffers",
        paths=("texture",),
        probe=fails_to_lower(partial(conv, groups=8), "a depthwise convolution is lowered"),
        edits=Edits(layouts=plain_if_grouped),
    ),
    Quirk(
        "transposed-conv-layout",
        "a transposed convolution behind a convolution gets NCHW4c, which it does not take: `Layouts must have the "
        "same size`",
        upstream="src/relax/op/nn/convolution.cc: InferLayoutConv2dTranspose",
        workaround="transposed convolutions stay in NCHW, on buffers",
        paths=("texture",),
        probe=fails_to_lower(transposed_conv, "a transposed convolution is lowered"),
        edits=Edits(layouts=plain_if_transposed),
    ),
    Quirk(
        "texture-conv-out-dtype",
        "float16 convolutions in NCHW4c are legalised with a float32 result and cannot be fused",
        upstream="python/tvm/relax/transform/legalize_ops/adreno/convolution.py: out_dtype is commented out",
        workaround="a legalisation of ours passes the result's number format on",
        paths=("texture",),
        probe=fails_to_lower(partial(conv, dtype="float16"), "a float16 convolution is lowered"),
        edits=Edits(relax=legalize_with_out_dtype),
    ),
    Quirk(
        "image-to-image-copy",
        "a tensor is copied between images of different layouts and extents: CL_INVALID_VALUE on the device",
        upstream="src/backend/opencl/runtime/opencl_device_api.cc: CopyDataFromTo takes the region from the target "
        "alone; src/relax/backend/adreno/annotate_custom_storage.cc asks for such copies",
        workaround="such a copy goes through a buffer, from which and to which TVM's runtime copies right",
        paths=("texture",),
        probe=_copied_between_images,
        edits=Edits(relax=copy_through_buffers),
    ),
)
