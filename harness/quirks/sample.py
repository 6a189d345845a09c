"""The smallest modules that show a defect, for the probes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.compiler.compat import opencl_source, tensor_type, type_of
from harness.paths.base import ImageLimits
from harness.paths.opencl import OpenCLPath
from harness.paths.texture import TexturePath
from harness.paths.workaround import Workaround, edit_model
from harness.quirks.base import Presence, ProbeAnswer

_TEXTURE = TexturePath()


def conv(*, groups: int = 1, dtype: str = "float32", input_name: str = "data") -> Any:
    """A convolution."""
    return _network(lambda _builder, conv: conv(), groups=groups, dtype=dtype, input_name=input_name)


def max_pool() -> Any:
    """A convolution, then a max pool."""
    from tvm import relax

    return _network(lambda _builder, conv: relax.op.nn.max_pool2d(conv(), (2, 2), strides=(2, 2)))


def max_pool_into_smaller_image() -> Any:
    """A max pool between two convolutions, of which only the second fits an image of one row for each batch."""
    from tvm import relax

    def make(builder: Any, conv: Any) -> Any:
        return conv(builder.emit(relax.op.nn.max_pool2d(conv(), (2, 2), strides=(2, 2))))

    return _network(make, side=128)


def average_pool() -> Any:
    """A convolution, then an average pool."""
    from tvm import relax

    return _network(lambda _builder, conv: relax.op.nn.avg_pool2d(conv(), (2, 2), strides=(2, 2)))


def average_pool_into_image() -> Any:
    """An average pool between two convolutions."""
    from tvm import relax

    return _network(lambda builder, conv: conv(builder.emit(relax.op.nn.avg_pool2d(conv(), (2, 2), strides=(2, 2)))))


def concat() -> Any:
    """Two convolutions side by side, concatenated, and a third."""
    from tvm import relax

    return _network(lambda builder, conv: conv(builder.emit(relax.op.concat([conv(), conv()], axis=1))))


def transposed_conv() -> Any:
    """A convolution, then a transposed one."""
    import numpy as np
    from tvm import relax

    weight = relax.const(np.ones((8, 4, 2, 2), "float32"))
    return _network(lambda _builder, conv: relax.op.nn.conv2d_transpose(conv(), weight, strides=(2, 2)))


def dropout() -> Any:
    """A convolution, then a dropout, as the importer leaves it for inference."""
    from tvm import relax

    return _network(lambda builder, conv: relax.TupleGetItem(builder.emit(relax.op.nn.dropout(conv(), 0.5)), 0))


def sum_of_stack() -> Any:
    """The sum of two convolutions, as the importer makes it of ONNX's `Sum`."""
    from tvm import relax

    return _network(lambda builder, conv: relax.op.sum(builder.emit(relax.op.stack([conv(), conv()], axis=0)), axis=0))


def grouped_conv_and_activation() -> Any:
    """A 1x1 convolution in two groups, then a rectifier."""
    from tvm import relax

    return _network(lambda _builder, conv: relax.op.nn.relu(conv()), groups=2, kernel=1)


def _network(
    make: Callable[[Any, Any], Any],
    *,
    groups: int = 1,
    kernel: int = 3,
    side: int = 8,
    dtype: str = "float32",
    input_name: str = "data",
) -> Any:
    """A module whose `main` is what `make` builds of convolutions with eight channels on `side` x `side`."""
    import numpy as np
    from tvm import relax

    data = relax.Var(input_name, tensor_type((1, 8, side, side), dtype))
    builder = relax.BlockBuilder()

    def conv(value: Any = data) -> Any:
        channels = int(type_of(value).shape[1])
        weight = relax.const(np.ones((8, channels // groups, kernel, kernel), dtype))
        return builder.emit(relax.op.nn.conv2d(value, weight, groups=groups, padding=kernel // 2))

    with builder.function("main", [data]):
        with builder.dataflow():
            result = builder.emit_output(make(builder, conv))
        builder.emit_func_output(result)
    return builder.get()


def texture_target() -> Any:
    """The texture path's target for a device with Adreno's limits."""
    return _TEXTURE.target(ImageLimits(), None)


def lower(mod: Any, workarounds: Sequence[Workaround]) -> Any:
    """TVM's own Relax passes of the texture path, with these workarounds."""
    return _TEXTURE.lower(edit_model(mod, workarounds), texture_target(), workarounds)


def source(mod: Any, workarounds: Sequence[Workaround], path: OpenCLPath = _TEXTURE) -> str:
    """OpenCL source of the texture path or another, with these workarounds."""
    target = path.target(ImageLimits(), None)
    lowered = path.lower(edit_model(mod, workarounds), target, workarounds)
    return opencl_source(path.build(lowered, target, workarounds))


def lowers(mod: Any, workarounds: Sequence[Workaround], what: str) -> ProbeAnswer:
    """PRESENT if TVM's own passes of the texture path raise, whatever it is."""
    try:
        lower(mod, workarounds)
    except Exception as error:  # whatever TVM raises is the answer
        return ProbeAnswer(Presence.PRESENT, str(error).strip().splitlines()[-1])
    return ProbeAnswer(Presence.ABSENT, f"{what} is lowered")
