"""What the CLML path's quirks change: matches that stay on OpenCL, a pattern of ours, the model, and TVM's passes."""

from __future__ import annotations

from typing import Any

from harness.compile.compiler.compat import dpl, dtype_of, is_constant, relax, return_type, rewrite_main, tvm, type_of
from harness.compile.compiler.passes import Passes, insert_before
from harness.compile.paths.clml.codegen import shape_of
from harness.compile.paths.clml.patterns import Match
from harness.compile.quirks.constants import compute_constants

_DIMENSIONS = 4
_OPERANDS = 2
_EPSILON_TOLERANCE = 1e-3
_RELU6 = "openclml.relax.nn.relu6"
"""The runtime goes by how a name ends, and `nn.relu6` is an activation of CLML's."""


def has_unplaced_operand(match: Match) -> bool:
    """Return a weight that is no constant, or a bias on the left of its sum."""
    if match.convolution is None:
        return False
    bias = match.calls.get("relax.add")
    return not is_constant(match.convolution.args[1]) or (bias is not None and is_constant(bias.args[0]))


def is_too_large(match: Match) -> bool:
    """Return whether an activation's leading size is above one, or it has too few or too many sizes."""
    shapes = [shape_of(tensor) for tensor in match.activations]
    return any(not 0 < len(shape) <= _DIMENSIONS or shape[0] != 1 for shape in shapes)


def is_grouped(match: Match) -> bool:
    """Return whether it has more than one group. The runtime's transposed convolution ignores groups."""
    return match.convolution is not None and match.convolution.attrs.groups != 1


def has_no_bias_per_channel(match: Match) -> bool:
    """Return whether a constant of another shape than (1, channels, 1, 1) is added to a convolution."""
    if match.convolution is None or "relax.add" not in match.calls:
        return False
    added = [shape_of(type_of(arg)) for arg in match.calls["relax.add"].args if is_constant(arg)]
    channels = shape_of(type_of(match.convolution))[1]
    return added != [[1, channels, 1, 1]]


def is_pad_unlike_padding(match: Match) -> bool:
    """Other than zeros around height and width, or beside padding of the convolution's own, which would be lost."""
    if "relax.nn.pad" not in match.calls or match.convolution is None:
        return False
    pad = match.calls["relax.nn.pad"].attrs
    outer = [int(width) for width in pad.pad_width][:4]
    own = [int(width) for width in match.convolution.attrs.padding]
    return str(pad.pad_mode) != "constant" or pad.pad_value != 0 or any(outer) or any(own)


def has_rounded_epsilon(match: Match) -> bool:
    """Six decimals change the epsilon of a fused batch norm by more than a thousandth."""
    if match.convolution is None or "relax.nn.batch_norm" not in match.calls:
        return False
    epsilon = float(match.calls["relax.nn.batch_norm"].attrs.epsilon)
    return abs(float(f"{epsilon:f}") - epsilon) > _EPSILON_TOLERANCE * epsilon


def has_constant_on_the_left(match: Match) -> bool:
    """Return whether a constant is subtracted from or divided; sums, products and extrema commute."""
    ordered = (match.calls.get(name) for name in ("relax.subtract", "relax.divide"))
    return any(call is not None and is_constant(call.args[0]) for call in ordered)


def has_same_operand_twice(match: Match) -> bool:
    """Return whether both operands are the same variable."""
    operands = list(getattr(match.root, "args", []))
    return len(operands) == _OPERANDS and bool(operands[0].same_as(operands[1]))


def is_pooling_of_another_kind(match: Match) -> bool:
    """Return an attribute of a pooling that the runtime does not read would matter."""
    name = next((n for n in ("relax.nn.max_pool2d", "relax.nn.avg_pool2d") if n in match.calls), None)
    if name is None:
        return False
    call = match.calls[name]
    attrs = call.attrs
    if (str(attrs.layout), str(attrs.out_layout)) != ("NCHW", "NCHW") or any(d != 1 for d in attrs.dilation):
        return True
    padding = [int(width) for width in attrs.padding]
    if name == "relax.nn.avg_pool2d" and attrs.count_include_pad and any(padding):
        return True
    sizes, results = shape_of(type_of(call.args[0]))[2:], shape_of(type_of(call))[2:]
    spans = [size + padding[i] + padding[i + 2] - int(attrs.pool_size[i]) for i, size in enumerate(sizes)]
    return results != [span // int(stride) + 1 for span, stride in zip(spans, attrs.strides, strict=True)]


def is_global_pool_not_square(match: Match) -> bool:
    """Height and width differ."""
    if "relax.mean" not in match.calls:
        return False
    height, width = shape_of(type_of(match.calls["relax.mean"].args[0]))[2:4]
    return height != width


def is_softmax_along_another_axis(match: Match) -> bool:
    """Neither along the channels nor, in four dimensions, along the width."""
    if "relax.nn.softmax" not in match.calls:
        return False
    call = match.calls["relax.nn.softmax"]
    rank = len(shape_of(type_of(call)))
    return (rank, call.attrs.axis % rank) not in ((2, 1), (3, 1), (4, 1), (4, 3))


def relu6_pattern() -> list[Any]:
    """Return a pattern for a clip with three arguments, alone: the code generator drops a fused clip.

    Clips to other bounds stay on OpenCL: no composite's name can reach the runtime's clip.
    """
    from tvm.relax.backend.adreno.clml import clml_pattern_table

    check_unary = next(check for name, _, _, check in clml_pattern_table() if name == "openclml.relax.nn.relu")
    data = dpl.wildcard()

    def check_relu6(context: Any) -> bool:
        low, high = (getattr(bound, "value", None) for bound in list(context.matched_expr.args)[1:])
        return (low, high) == (0, 6) and bool(check_unary(context))

    return [(_RELU6, dpl.is_op("relax.clip")(data, dpl.wildcard(), dpl.wildcard()), {"lhs": data}, check_relu6)]


def fold_batch_norms(mod: Any) -> Any:
    """Fold batch norms into the convolutions before them, as TVM's offload does later, while all is float32."""
    return tvm.transform.Sequential(
        compute_constants(
            [relax.transform.Normalize(), relax.transform.FoldBatchnormToConv2D(), relax.transform.FoldConstant()]
        )
    )(mod)


def convert_transposed_back(passes: Passes) -> Passes:
    """After the offload, weights of what stays go to the one layout that TVM can legalise."""
    layouts = {"relax.nn.conv2d_transpose": ["NCHW", "IOHW"]}
    return insert_before(passes, "LegalizeOps", relax.transform.ConvertLayout(layouts))


def spell_out_batch_norm_flags(mod: Any) -> Any:
    """Before batch norms are folded or offloaded: a gamma that is not used becomes one, a beta zero."""

    def replace(call: Any, _matched: Any) -> Any:
        (data, gamma, beta, mean, variance), attrs = call.args, call.attrs
        if attrs.center and attrs.scale:
            return call
        gamma = gamma if attrs.scale else _constant_like(gamma, 1)
        beta = beta if attrs.center else _constant_like(beta, 0)
        options = {key: getattr(attrs, key) for key in ("epsilon", "momentum", "training")}
        return relax.op.nn.batch_norm(data, gamma, beta, mean, variance, axis=attrs.axis, **options)

    return rewrite_main(mod, dpl.is_op("relax.nn.batch_norm")(varg_default_wildcard=True), replace)


def _constant_like(tensor: Any, value: float) -> Any:
    import numpy as np

    kind = type_of(tensor)
    return relax.const(np.full(shape_of(kind), value, dtype_of(kind)), dtype_of(kind))


def inner_outputs(part: Any) -> list[Any]:
    """Return the variables that a part returns and reads itself; none if only its last operator reads them.

    What is freed behind that operator is given to nothing else, unless a copy of another result follows.
    """
    body = part.body.body
    returned = [*body.fields] if hasattr(body, "fields") else [body]
    values = [binding.value for block in part.body.blocks for binding in block.bindings]
    calls = [value for value in values if hasattr(value, "args")]
    last_reader = {argument: place for place, call in enumerate(calls) for argument in call.args}
    inner = [variable for variable in returned if variable in last_reader]
    return inner if any(last_reader[variable] < len(calls) - 1 for variable in inner) else []


def offloaded_parts(mod: Any) -> dict[Any, Any]:
    """Return the functions that go to CLML, by their variables."""
    return {
        variable: function
        for variable, function in mod.functions_items()
        if function.attrs is not None and "Codegen" in function.attrs
    }


def copy_inner_outputs(mod: Any) -> Any:
    """Let each part return a copy of what it reads before its end."""
    for variable, part in offloaded_parts(mod).items():
        if copied := inner_outputs(part):
            mod.update_func(variable, _with_copies(part, copied))
    return relax.transform.Normalize()(mod)


def _with_copies(part: Any, copied: list[Any]) -> Any:
    """Return the part with a reshape to the same shape behind all else, for each of these results."""
    bindings, copies = [], {}
    for variable in copied:
        kind = type_of(variable)
        copy = _composite_copy(kind)
        called, copies[variable] = relax.Var("copy", type_of(copy)), relax.Var("copied", kind)
        bindings.append(relax.VarBinding(called, copy))
        bindings.append(relax.VarBinding(copies[variable], relax.Call(called, [variable])))
    body = part.body.body
    fields = [copies.get(variable, variable) for variable in getattr(body, "fields", [body])]
    result = relax.Tuple(fields) if hasattr(body, "fields") else fields[0]
    whole = relax.SeqExpr([*part.body.blocks, relax.BindingBlock(bindings)], result)
    return relax.Function(part.params, whole, return_type(part), part.is_pure, part.attrs)


def _composite_copy(kind: Any) -> Any:
    """Return a composite that TVM's table has, too: a reshape."""
    data, builder = relax.Var("data", kind), relax.BlockBuilder()
    with builder.function("copy", [data], private=True):
        with builder.dataflow():
            result = builder.emit_output(relax.op.reshape(data, shape_of(kind)))
        builder.emit_func_output(result)
    return builder.get()["copy"].with_attr("Composite", "openclml.reshape")
