"""Layouts of the texture path that an operator cannot be legalised in, and memory that it cannot be called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import pairwise
from operator import or_
from typing import Any

from harness.compile.compiler.compat import (
    array_of,
    copy_function,
    dpl,
    dtype_of,
    is_tensor,
    name_of,
    operator_name,
    relax,
    return_type,
    rewrite_main,
    tensor_type,
    tuple_fields,
    tvm,
    type_of,
    with_main,
)
from harness.compile.compiler.passes import Passes, before, before_first, own_pass, replace_last
from harness.compile.compiler.tir import has_threads
from harness.compile.paths.base import Edits, Layouts
from harness.compile.paths.lowered_module import bindings
from harness.compile.quirks.base import Quirk

_CONV = "relax.nn.conv2d"
_NORMS = ("group_norm", "instance_norm", "layer_norm", "rms_norm")
_COMMUTATIVE = ("add", "maximum", "minimum", "multiply")
_ORDERED = ("divide", "greater", "greater_equal", "less", "less_equal", "power", "subtract")
_REDUCTIONS = ("max", "mean", "min", "prod", "std", "sum", "variance")
_TRANSPOSED = "relax.nn.conv2d_transpose"
_BUFFER = "global"
_TEXELS = ("float16", "float32")
"""Number formats that an image keeps. TVM puts integers of as many bits into the same images, from which OpenCL lets a
device read denormal numbers, as small integers are, as zeros (OpenCL C, on image reads without a sampler)."""
_SPECIALIZE = "SpecializePrimFuncBasedOnCallSite"  # makes kernels for the scopes of their arguments
_VIEWS = "RewriteDataflowReshape"
"""The pass of TVM's that makes views of reshapes."""


def plain_if_grouped(call: Any) -> Layouts:
    """NCHW for convolutions with more than one group."""
    grouped = call.op.name == _CONV and call.attrs.groups > 1
    return {_CONV: ["NCHW", "OIHW", "NCHW"]} if grouped else {}


def keep_reshapes(passes: Passes) -> Passes:
    """Keep reshapes as kernels in a module in which TVM would lose one of its views, or make a view of an image.

    One of a plain convolution, whose result has no memory scope, is lost: TVM gives the view another type than the
    reshape has, so a new variable, and what reads the old one stays as it is. An image of another shape has other rows.
    """
    views = relax.transform.RewriteDataflowReshape()

    def run(mod: Any) -> Any:
        viewed = views(mod)
        reshapes = [part.value for part in bindings(viewed["main"]) if operator_name(part.value) == "relax.reshape"]
        of_image = any("texture" in _scope(type_of(each.args[0])) for each in reshapes)
        return mod if of_image or relax.analysis.free_vars(viewed["main"]) else viewed

    return replace_last(passes, _VIEWS, own_pass(_VIEWS, run))


def plain_if_transposed(call: Any) -> Layouts:
    """NCHW for transposed convolutions."""
    return {_TRANSPOSED: ["NCHW", "IOHW", "NCHW"]} if call.op.name == _TRANSPOSED else {}


def legalize(builder: Any, call: Any) -> Any:
    """Return a convolution in NCHW4c as TVM legalises it, with the result's own number format."""
    return builder.call_te(
        tvm.topi.nn.conv2d_NCHWc_OIHWo,
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
    return replace_last(passes, "LegalizeOps", relax.transform.LegalizeOps({_CONV: legalize}))


def without_split_points(mod: Any) -> Any:
    """Replace a split of an image's channels at points: by one into equal sections, or by a slice for each part.

    The layout pass divides the number of channels by four, but not the points. A number of sections needs no division,
    and the inputs of slices stay in NCHW.
    """
    return _replace_calls(mod, "relax.split", _without_points)


def _without_points(call: Any, data: Any) -> Any:
    shape: Any = getattr(type_of(data).shape, "values", ())
    points = call.attrs.indices_or_sections
    of_channels = len(shape) == 4 and int(call.attrs.axis) % 4 == 1
    if not of_channels or not hasattr(points, "__len__") or not hasattr(shape[1], "value"):
        return call
    ends = [0, *map(int, points), int(shape[1])]
    sizes = {end - begin for begin, end in pairwise(ends)}
    if any(size % 4 for size in sizes):  # the layout pass leaves such a split in NCHW by itself
        return call
    if len(sizes) == 1:
        return relax.op.split(data, len(ends) - 1, 1)
    return relax.Tuple([relax.op.strided_slice(data, [1], [begin], [end]) for begin, end in pairwise(ends)])


def reshape_reductions(mod: Any, *, kept_only: bool = False) -> Any:
    """Put a reshape behind each reduction of four axes, to the shape that it has: a reshape takes the network's layout.

    The layout pass says that a single channel lies in NCHW4c, where it has four. And it keeps channels in fours where
    fewer axes are left, which neither 1-D convolutions and pools take nor a further reduction that keeps their axis.
    TVM fuses no reshape: what follows gets a kernel of its own. `kept_only` leaves those that drop their axes alone.
    """
    reductions: list[Any] = []  # that took the place of one, which TVM matches once more

    def replace(call: Any, _matched: Any) -> Any:
        (data,), shape = call.args, type_of(call).shape
        of_image = int(type_of(data).ndim) == 4 and len(getattr(shape, "values", ())) > 0
        if not of_image or (kept_only and not call.attrs.keepdims) or any(map(call.same_as, reductions)):
            return call
        reductions.append(_operator(call)(data, reduced_axes(call)))
        return relax.op.reshape(reductions[-1], shape)

    return rewrite_main(mod, any_of(_REDUCTIONS, operands=1), replace)


def reduced_axes(call: Any) -> list[int]:
    """Return the axes that a reduction goes over, counted from 0."""
    rank = int(type_of(call.args[0]).ndim)
    return list(range(rank)) if call.attrs.axis is None else [int(axis) % rank for axis in call.attrs.axis]


def without_broadcast_channel(mod: Any) -> Any:
    """Let an image's tensor be the second operand where the other one has a single channel, or repeat that channel.

    If the first operand is in NCHW4c, the layout pass asks for the second in it, too, which one channel does not fill.
    """
    pattern = any_of((*_COMMUTATIVE, *_ORDERED), operands=2)
    return rewrite_main(mod, pattern, lambda call, _matched: _without_broadcast_channel(call))


def legalize_norms(mod: Any) -> Any:
    """Make kernels of the norms, whose inputs the layout pass then leaves in the layout that the network has."""
    norms = {f"relax.nn.{name}" for name in _NORMS}
    others = {operator_name(binding.value) for binding in bindings(mod["main"])} - norms - {""}
    return relax.transform.LegalizeOps(skip_ops=sorted(others))(mod)


def any_of(operators: Sequence[str], operands: int) -> Any:
    """Return the pattern of a call of one of these operators."""
    return reduce(or_, (dpl.is_op(f"relax.{name}")(*(dpl.wildcard() for _ in range(operands))) for name in operators))


def _operator(call: Any) -> Callable[..., Any]:
    """Return the function that makes calls of the same operator."""
    operator: Callable[..., Any] = getattr(relax.op, call.op.name.removeprefix("relax."))
    return operator


def _without_broadcast_channel(call: Any) -> Any:
    first, second = call.args
    shapes: list[Any] = [getattr(type_of(operand).shape, "values", ()) for operand in (first, second)]
    if any(len(shape) != 4 for shape in shapes) or [getattr(shape[1], "value", 0) == 1 for shape in shapes] != [0, 1]:
        return call
    if call.op.name.removeprefix("relax.") in _COMMUTATIVE:
        return _operator(call)(second, first)
    return _operator(call)(first, relax.op.broadcast_to(second, type_of(call).shape))


def transform_bools_as_floats(mod: Any) -> Any:
    """Transform tensors of bools as float32, which an image can hold, too."""
    return _replace_calls(mod, "relax.layout_transform", _as_floats)


def _as_floats(call: Any, data: Any) -> Any:
    if dtype_of(type_of(data)) != "bool":
        return call
    return relax.op.astype(relax.Call(call.op, [relax.op.astype(data, "float32")], call.attrs), "bool")


def copy_through_buffers(mod: Any) -> Any:
    """Put a buffer between the images of a copy."""
    return _replace_calls(mod, "relax.to_vdevice", _through_buffer)


def _through_buffer(call: Any, data: Any) -> Any:
    source, target = type_of(data).vdevice, call.attrs.dst_vdevice
    if not source or not reorders(str(source.memory_scope), str(target.memory_scope)):
        return call
    return relax.op.to_vdevice(relax.op.to_vdevice(data, _in_buffers(target)), target)


def _in_buffers(device: Any) -> Any:
    """Return a virtual device with buffers in place of images."""
    return type(device)(device.target, int(device.vdevice_id), _BUFFER)


def copy_inputs_to_images(mod: Any) -> Any:
    """Copy the inputs into images that kernels take."""
    main = mod["main"]
    kinds = ((param, type_of(param)) for param in main.params)
    images = {param: kind for param, kind in kinds if "texture" in _scope(kind) and not _has_no_texels(kind)}
    inputs = {
        image: relax.Var(name_of(image), tensor_type(kind.shape, dtype_of(kind), _in_buffers(kind.vdevice)))
        for image, kind in images.items()
    }
    copies = [
        relax.VarBinding(image, relax.op.to_vdevice(inputs[image], kind.vdevice)) for image, kind in images.items()
    ]
    body = relax.SeqExpr([relax.BindingBlock(copies), *main.body.blocks], main.body.body)
    params = [inputs.get(param, param) for param in main.params]
    changed = with_main(mod, relax.Function(params, body, return_type(main), main.is_pure, main.attrs))
    return relax.transform.Normalize()(changed) if images else mod


def keep_bytes_in_buffers(mod: Any) -> Any:
    """Put inputs, constants, copies and results into buffers that no image keeps, or that are stored one by one."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    calls = (binding for binding in bindings(mod["main"]) if operator_name(binding.value) == "relax.call_tir")
    by_number = [binding.var for binding in calls if has_threads(mod[binding.value.args[0]])]

    class KeepBytes(PyExprMutator):  # type: ignore[misc]
        """Gives a variable the type of what it is bound to, which a rewritten call alone does not."""

        def visit_call_(self, call: Any) -> Any:
            of_image = _has_no_texels(type_of(call))
            call = self.visit_expr_post_order(call)
            if of_image and operator_name(call) == "relax.to_vdevice":
                return call.args[0]
            kind = type_of(call)
            of_tensor = operator_name(call) == "relax.call_tir" and len(call.args) == 2 and is_tensor(kind)
            if not of_tensor or not (_has_no_texels(kind) or has_threads(mod[call.args[0]])):
                return call
            return relax.call_tir(*call.args, tensor_type(kind.shape, dtype_of(kind)))

        def visit_var_def_(self, var: Any) -> Any:
            kind = type_of(var)
            if not _has_no_texels(kind) and not any(map(var.same_as, by_number)):
                return var
            return relax.Var(name_of(var), tensor_type(kind.shape, dtype_of(kind)))

        def visit_constant_(self, constant: Any) -> Any:
            kind = type_of(constant)
            return relax.const(array_of(constant), dtype_of(kind)) if _has_no_texels(kind) else constant

        visit_generic_const_ = visit_constant_  # its name from 0.27 on

    return with_main(mod, mutator(KeepBytes)(mod).visit_expr(mod["main"]))


def _has_no_texels(kind: Any) -> bool:
    """Return whether a type is of an image that does not keep its numbers."""
    return "texture" in _scope(kind) and dtype_of(kind) not in _TEXELS


def _replace_calls(mod: Any, operator: str, replacement: Callable[[Any, Any], Any]) -> Any:
    """Replace calls of an operator on one tensor. `replacement` takes the call and the tensor."""
    data = dpl.wildcard()
    replaced = rewrite_main(mod, dpl.is_op(operator)(data), lambda call, matched: replacement(call, matched[data]))
    return relax.transform.Normalize()(replaced)


def reorders(source: str, target: str) -> bool:
    """Return whether both are images, in which TVM lays out the same tensor differently."""
    return "texture" in source and "texture" in target and source != target


def one_kernel_for_each_memory(mod: Any) -> Any:
    """Give calls with other scopes a copy of the function.

    TVM makes a function for each of its calls in turn, under one name, so that all have what the last one takes.
    """
    builder = relax.BlockBuilder(mod)
    functions: dict[tuple[str, ...], Any] = {}
    """By name, and by the scopes of what they take and return."""

    def replace(call: Any, _matched: Any) -> Any:
        called, arguments, *sizes = call.args
        if sizes or not hasattr(arguments, "fields"):
            return call
        kinds = [*map(type_of, arguments.fields), *(tuple_fields(type_of(call)) or (type_of(call),))]
        key = (called.name_hint, *map(_scope, kinds))
        if key not in functions:
            first = not any(called.name_hint == name for name, *_ in functions)
            functions[key] = called if first else _add_copy(builder, mod[called], called.name_hint, len(functions))
        return call if functions[key] == called else relax.call_tir(functions[key], arguments, type_of(call))

    main = rewrite_main(mod, dpl.is_op("relax.call_tir")(varg_default_wildcard=True), replace)["main"]
    return relax.transform.Normalize()(with_main(builder.get(), main))


def _add_copy(builder: Any, function: Any, name: str, number: int) -> Any:
    """Return the name of a copy, which for a moment has an attribute, or the builder would take it for the same."""
    copy = copy_function(function)
    new = builder.add_func(copy.with_attr("adreno_bench.copy", number), name)
    builder.update_func(new, copy)
    return new


def _scope(kind: Any) -> str:
    """Memory scope of a tensor's type; that of buffers, where it says none."""
    device = getattr(kind, "vdevice", None)
    return str(device.memory_scope) if device else _BUFFER


_row = partial(Quirk, paths=("texture",))
QUIRKS: tuple[Quirk, ...] = (
    _row(
        "grouped-conv-nchw4c",
        "depthwise and grouped convolutions are converted to NCHW4c, and legalising them divides by zero",
        upstream="python/tvm/topi/nn/conv2d.py: conv2d_NCHWc_OIHWo; the conversion is in "
        "relax/backend/adreno/pipeline.py",
        workaround="convolutions with more than one group stay in NCHW, on buffers",
        edits=Edits(layouts=plain_if_grouped, relax=keep_reshapes),
    ),
    _row(
        "transposed-conv-layout",
        "a transposed convolution behind a convolution gets NCHW4c, which it does not take: `Layouts must have the "
        "same size`",
        upstream="src/relax/op/nn/convolution.cc: InferLayoutConv2dTranspose",
        workaround="transposed convolutions stay in NCHW, on buffers",
        edits=Edits(layouts=plain_if_transposed, relax=keep_reshapes),
    ),
    _row(
        "split-channels-layout",
        "a split of channels behind a convolution (as in YOLOv8) gets NCHW4c, and its points are not divided by "
        "four: the last part has no channels",
        upstream="src/relax/op/tensor/manipulate.cc: InferLayoutSplit changes the axis and leaves indices_or_sections",
        workaround="a split into equal parts names their number, which needs no division; others are slices in NCHW",
        edits=Edits(model=without_split_points),
    ),
    _row(
        "single-channel-layout",
        "a reduction over the channels of a convolution that keeps their axis (spatial attention, a norm of channels) "
        "gets NCHW4c, as if it still had four channels; a mean of its rows keeps its channels in fours, which 1-D "
        "convolutions, pools and norms of embeddings do not take",
        upstream="src/relax/op/tensor/statistical.cc: InferLayoutStatistical returns the input's layout for keepdims, "
        "and one of split channels for fewer axes",
        workaround="a reduction drops its axes, and a reshape brings them back, or takes the layout of the network",
        edits=Edits(model=reshape_reductions, relax=keep_reshapes),
    ),
    _row(
        "broadcast-channel-layout",
        "an operator of a convolution and a tensor with one channel of four axes (spatial attention, a number in four "
        "axes) does not compile: `Cannot broadcast from 5 to 4`",
        upstream="src/relax/op/tensor/binary.cc: InferLayoutBinaryEwise asks for the second operand in the layout of "
        "the first, after it has seen that it does not fit",
        workaround="the convolution becomes the second operand, or the channel of the other one is repeated",
        edits=Edits(model=without_broadcast_channel),
    ),
    _row(
        "norm-layout",
        "a norm behind a convolution gets the axes of NCHW4c, also of what a mean has left of the image (as in "
        "ConvNeXt): `relax.nn.layer_norm that are unequal`",
        upstream="src/relax/op/nn/nn.cc: InferLayoutLayerNorm, and those of the other norms",
        workaround="norms are legalised before layouts are chosen, and take NCHW",
        edits=Edits(relax=before("ConvertLayout", "LegalizeNorms", legalize_norms)),
    ),
    _row(
        "bool-layout-transform",
        "a comparison of a convolution's result gets NCHW4c, and its padding is a float32: `ScheduleError` in "
        "`transform_layout`",
        upstream="python/tvm/relax/transform/legalize_ops/manipulate.py: _layout_transform pads with 0.0 what is no "
        "integer",
        workaround="a tensor of bools is transformed as float32",
        edits=Edits(relax=before_first("FoldConstant", "TransformBoolsAsFloats", transform_bools_as_floats)),
    ),
    _row(
        "texture-conv-out-dtype",
        "float16 convolutions in NCHW4c are legalised with a float32 result and cannot be fused",
        upstream="python/tvm/relax/transform/legalize_ops/adreno/convolution.py: out_dtype is commented out",
        workaround="a legalisation of ours passes the result's number format on",
        edits=Edits(relax=legalize_with_out_dtype),
    ),
    _row(
        "image-to-image-copy",
        "a tensor is copied between images of different layouts and extents: CL_INVALID_VALUE on the device",
        upstream="src/backend/opencl/runtime/opencl_device_api.cc: CopyDataFromTo takes the region from the target "
        "alone; src/relax/backend/adreno/annotate_custom_storage.cc asks for such copies",
        workaround="such a copy goes through a buffer, from which and to which TVM's runtime copies right",
        edits=Edits(relax=before(_SPECIALIZE, "CopyThroughBuffers", copy_through_buffers)),
    ),
    _row(
        "texture-input",
        "an input of five axes, the last of which is 4, is taken for an image, and is passed as a buffer: the process "
        "on the device dies, or `CL_INVALID_ARG_VALUE`",
        upstream="src/relax/backend/adreno/annotate_custom_storage.cc gives the scope of an image to parameters of "
        "`main` as well",
        workaround="such an input is copied into an image first",
        edits=Edits(relax=before(_SPECIALIZE, "CopyInputsToImages", copy_inputs_to_images)),
    ),
    _row(
        "texture-of-bytes",
        "a comparison of a convolution that several operators read is put into an image of bools: `Unsupported Channel "
        "Size: 32`; so is what ScatterElements makes of a volume four wide, number by number: wrong results",
        upstream="src/relax/backend/adreno/annotate_custom_storage.cc looks at the shape of a result and not at its "
        "number format",
        workaround="integers, bools, doubles and what is scattered stay in buffers",
        edits=Edits(relax=before(_SPECIALIZE, "KeepBytesInBuffers", keep_bytes_in_buffers)),
    ),
    _row(
        "shared-kernel-memory",
        "calls whose tensors lie in an image here and in a buffer there share one kernel, made for one: SIGSEGV",
        upstream="src/relax/transform/specialize_primfunc_based_on_callsite.cc: each call overwrites the function of "
        "the one before",
        workaround="calls whose tensors lie in other memory get a copy of the function before it is made for one",
        edits=Edits(relax=before(_SPECIALIZE, "OneKernelForEachMemory", one_kernel_for_each_memory)),
    ),
)
