"""The smallest modules that show a defect, for the probes, and what TVM's own passes make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from defects.presence import presence
from harness.base.case import Precision
from harness.compile.compiler.compat import opencl_source, tensor_type
from harness.compile.paths.base import ImageLimits, Workaround, edit_model
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.paths.texture import TexturePath
from harness.compile.quirks import quirks_for
from harness.compile.quirks.base import Quirk
from harness.tools.upstream.probe_answer import ProbeAnswer

Probe = Callable[..., ProbeAnswer]
"""Takes the quirks whose workarounds are applied, none for TVM as it is."""
Emit = Callable[[Any], Any]
"""Adds an expression to a network and returns the variable that holds it."""

_TEXTURE = TexturePath()
_CHANNELS = 8


def all_but(quirk_id: str) -> list[Quirk]:
    """Return the other quirks of path texture: some defects show once nothing else is wrong with a module."""
    return [quirk for quirk in quirks_for("texture", Precision.FLOAT32, as_shipped=False) if quirk.id != quirk_id]


def network(
    body: Callable[[Emit, Any], Any], shape: Sequence[int] = (1, 4, 8, 8), dtype: str = "float32", name: str = "data"
) -> Any:
    """Return a module whose `main` takes one tensor and returns what `body` makes of it."""
    from tvm import relax

    data = relax.Var(name, tensor_type(tuple(shape), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        with builder.dataflow():
            result = builder.emit_output(body(builder.emit, data))
        builder.emit_func_output(result)
    return builder.get()


def _convs(
    make: Callable[[Any, Callable[..., Any]], Any],
    *,
    groups: int = 1,
    kernel: int = 3,
    side: int = 8,
    dtype: str = "float32",
    input_name: str = "data",
) -> Any:
    """Return what `make` builds of TVM's operators and convolutions with eight channels on `side` x `side`."""
    import numpy as np
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        def conv(value: Any = data, channels: int = _CHANNELS) -> Any:
            weight = relax.const(np.ones((_CHANNELS, channels // groups, kernel, kernel), dtype))
            return emit(relax.op.nn.conv2d(value, weight, groups=groups, padding=kernel // 2))

        return make(relax.op, conv)

    return network(body, (1, _CHANNELS, side, side), dtype, input_name)


conv = partial(_convs, lambda _op, conv: conv())
"""A convolution."""
max_pool = partial(_convs, lambda op, conv: op.nn.max_pool2d(conv(), (2, 2), strides=(2, 2)))
"""A convolution, then a max pool."""
max_pool_into_smaller_image = partial(
    _convs, lambda op, conv: conv(op.nn.max_pool2d(conv(), (2, 2), strides=(2, 2))), side=128
)
"""A max pool between two convolutions, of which only the second fits an image of one row for each batch."""
average_pool = partial(_convs, lambda op, conv: op.nn.avg_pool2d(conv(), (2, 2), strides=(2, 2)))
"""A convolution, then an average pool."""
average_pool_into_image = partial(_convs, lambda op, conv: conv(op.nn.avg_pool2d(conv(), (2, 2), strides=(2, 2))))
"""An average pool between two convolutions."""
concat = partial(_convs, lambda op, conv: conv(op.concat([conv(), conv()], axis=1), channels=2 * _CHANNELS))
"""Two convolutions side by side, concatenated, and a third."""
conv_and_erf = partial(_convs, lambda op, conv: conv(op.nn.relu(op.erf(conv()))))
"""`erf` of a convolution, and a rectifier, between two convolutions."""
sum_of_stack = partial(_convs, lambda op, conv: op.sum(op.stack([conv(), conv()], axis=0), axis=0))
"""The sum of two convolutions, as the importer makes it of ONNX's `Sum`."""
max_of_channels = partial(_convs, lambda op, conv: op.max(conv(), [1], keepdims=True))
"""The maximum over a convolution's channels, whose axis stays."""
conv_and_padding = partial(_convs, lambda op, conv: op.nn.pad(conv(), (0, 0, 0, 0, 0, 1, 0, 1)), side=40)
"""A convolution, and a row and a column of zeros."""
grouped_conv_and_activation = partial(_convs, lambda op, conv: op.nn.relu(conv()), groups=2, kernel=1)
"""A 1x1 convolution in two groups, then a rectifier."""

depthwise_conv_and_sigmoid = partial(_convs, lambda op, conv: op.sigmoid(conv()), groups=_CHANNELS, kernel=1)
"""A depthwise 1x1 convolution, whose sums have one product each, then a sigmoid."""


def product_with_channel() -> Any:
    """Return a convolution times a tensor with one channel."""
    import numpy as np
    from tvm import relax

    weights = relax.const(np.ones((1, 1, 8, 8), "float32"))
    return _convs(lambda op, conv: op.multiply(conv(), weights))


def unpadded_grouped_conv() -> Any:
    """Return a 3x3 convolution in two groups of four results, without padding."""
    import numpy as np
    from tvm import relax

    weight = relax.const(np.ones((_CHANNELS, 2, 3, 3), "float32"))
    return network(lambda emit, data: emit(relax.op.nn.conv2d(data, weight, groups=2)))


def first_row_of_difference() -> Any:
    """Return the first row of what a layer normalization begins with, the difference from the mean."""
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        centred = emit(relax.op.subtract(data, emit(relax.op.mean(data, [2], keepdims=True))))
        return relax.op.strided_slice(centred, [1], [0], [1])

    return network(body, (1, 5, 8))


def mean_and_padding() -> Any:
    """Return means of 24 rows, and 976 rows more."""
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        return relax.op.nn.pad(emit(relax.op.mean(data, [3], keepdims=True)), (0, 0, 0, 0, 0, 244, 0, 0))

    return network(body, (1, 4, 6, 8))


def sum_of_distances() -> Any:
    """Return how far each of eight numbers is from all others together."""
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        row, column = (emit(relax.op.expand_dims(data, axis)) for axis in (1, 2))
        return relax.op.sum(emit(relax.op.abs(emit(relax.op.subtract(row, column)))), [2])

    return network(body, (1, 8))


def biased_conv_and_silu() -> Any:
    """Return a convolution with a bias and `x * sigmoid(x)`, between two convolutions."""
    import numpy as np
    from tvm import relax

    bias = relax.const(np.ones((1, _CHANNELS, 1, 1), "float32"))

    def make(op: Any, conv: Any) -> Any:
        biased = op.add(conv(), bias)
        return conv(op.multiply(biased, op.sigmoid(biased)))

    return _convs(make)


def split_channels() -> Any:
    """Return a convolution whose channels are split at a point, and a convolution of each half, added."""
    from tvm import relax

    def make(op: Any, conv: Any) -> Any:
        halves = op.split(op.concat([conv(), conv()], axis=1), [_CHANNELS], 1)
        return op.add(*(conv(relax.TupleGetItem(halves, half)) for half in range(2)))

    return _convs(make)


def choice() -> Any:
    """Return a choice between a convolution and its square by a comparison, between two convolutions."""
    from tvm import relax

    def make(op: Any, conv: Any) -> Any:
        data = conv()
        return conv(op.where(op.greater(data, relax.const(0.0, "float32")), data, op.multiply(data, data)))

    return _convs(make)


def norm_of_mean() -> Any:
    """Return a norm of what a mean leaves of a convolution."""
    import numpy as np
    from tvm import relax

    weight = relax.const(np.ones(_CHANNELS, "float32"))
    return _convs(lambda op, conv: op.nn.layer_norm(op.mean(conv(), [2, 3]), weight, weight, [-1]))


def mask_and_its_opposite() -> Any:
    """Return a comparison of a convolution that two operators read, between convolutions."""
    import numpy as np
    from tvm import relax

    weight = relax.const(np.ones((_CHANNELS, _CHANNELS, 3, 3), "float32"))

    def body(emit: Emit, data: Any) -> Any:
        above = emit(relax.op.greater(emit(relax.op.nn.conv2d(data, weight, padding=1)), relax.const(0.0, "float32")))
        masks = [emit(relax.op.astype(mask, "float32")) for mask in (above, emit(relax.op.logical_not(above)))]
        return relax.op.add(*(emit(relax.op.nn.conv2d(mask, weight, padding=1)) for mask in masks))

    return network(body, (1, _CHANNELS, 8, 8))


def mask() -> Any:
    """Return a comparison of a convolution, cast to numbers, between two convolutions."""
    from tvm import relax

    zero = relax.const(0.0, "float32")
    return _convs(lambda op, conv: conv(op.astype(op.greater(conv(), zero), "float32")))


def scatter() -> Any:
    """Return a scatter of zeros along the channels."""
    import numpy as np
    from tvm import relax

    where = np.tile(np.arange(_CHANNELS, dtype="int64").reshape(1, -1, 1, 1), (1, 1, 8, 8))
    zeros = relax.const(np.zeros((1, _CHANNELS, 8, 8), "float32"))
    return _convs(lambda op, conv: op.scatter_elements(conv(), relax.const(where), zeros, axis=1))


def many_in_a_row() -> Any:
    """Return twenty pairs of element-wise operators in a row."""

    def body(emit: Emit, data: Any) -> Any:
        from tvm import relax

        for _ in range(20):
            data = relax.op.tanh(relax.op.sigmoid(data))
        return data

    return network(body)


def conv_and_its_input() -> Any:
    """Return a 1x1 convolution of a convolution, whose input is added to its result."""

    def make(op: Any, conv: Any) -> Any:
        first = conv()
        return op.add(conv(first), first)

    return _convs(make, kernel=1)


def transposed_conv() -> Any:
    """Return a convolution, then a transposed one."""
    import numpy as np
    from tvm import relax

    weight = relax.const(np.ones((_CHANNELS, 4, 2, 2), "float32"))
    return _convs(lambda op, conv: op.nn.conv2d_transpose(conv(), weight, strides=(2, 2)))


def conv_of_sum() -> Any:
    """Return two convolutions of the same shapes: of another one, and of its sum with the input."""
    import numpy as np
    from tvm import relax

    weight = relax.const(np.ones((_CHANNELS, _CHANNELS, 3, 3), "float32"))

    def body(emit: Emit, data: Any) -> Any:
        def conv(value: Any) -> Any:
            return emit(relax.op.nn.conv2d(value, weight, padding=1))

        first = conv(data)
        return relax.Tuple([conv(first), conv(emit(relax.op.add(data, first)))])

    return network(body, (1, _CHANNELS, 8, 8))


def dropout() -> Any:
    """Return a convolution, then a dropout, as the importer leaves it for inference."""
    from tvm import relax

    return _convs(lambda op, conv: relax.TupleGetItem(op.nn.dropout(conv(), 0.5), 0))


def clipped_conv() -> Any:
    """Return a convolution, then a Clip as the importer writes it: a function."""
    from tvm import relax, topi

    return _convs(lambda _op, conv: relax.BlockBuilder.current().emit_te(topi.clip, conv(), 0.0, 6.0))


def texture_target() -> Any:
    """Return the texture path's target for a device with Adreno's limits."""
    return _TEXTURE.target(ImageLimits(), None)


def lower(mod: Any, workarounds: Sequence[Workaround]) -> Any:
    """TVM's own Relax passes of the texture path, with these workarounds."""
    return _TEXTURE.lower(edit_model(mod, workarounds), texture_target(), workarounds)


def source(mod: Any, workarounds: Sequence[Workaround], path: OpenCLPath = _TEXTURE) -> str:
    """OpenCL source of the texture path or another, with these workarounds."""
    target = path.target(ImageLimits(), None)
    module = path.lower(edit_model(mod, workarounds), target, workarounds)
    return opencl_source(path.build(module, target, workarounds))


def fails_to_lower(make: Callable[[], Any], what: str, line: int = -1) -> Probe:
    """Return a probe: PRESENT if TVM's own passes of the texture path raise on a module, whatever it is.

    Args:
        make: The module.
        what: What is done to it if they do not raise.
        line: Which line of the error is seen.
    """

    def probe(*applied: Workaround) -> ProbeAnswer:
        try:
            lower(make(), applied)
        except Exception as error:  # whatever TVM raises is the answer
            return presence(True, str(error).strip().splitlines()[line])
        return presence(False, what)

    return probe
