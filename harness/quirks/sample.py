"""The smallest modules that show a defect, for the probes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.compiler.compat import opencl_source, tensor_type, type_of
from harness.paths.base import ImageLimits
from harness.paths.texture import TexturePath
from harness.paths.workaround import Workaround

_TEXTURE = TexturePath()


def conv(*, groups: int = 1, dtype: str = "float32") -> Any:
    """A convolution."""
    return _network(lambda _builder, conv: conv(), groups=groups, dtype=dtype)


def max_pool() -> Any:
    """A convolution, then a max pool."""
    from tvm import relax

    return _network(lambda _builder, conv: relax.op.nn.max_pool2d(conv(), (2, 2), strides=(2, 2)))


def average_pool() -> Any:
    """A convolution, then an average pool."""
    from tvm import relax

    return _network(lambda _builder, conv: relax.op.nn.avg_pool2d(conv(), (2, 2), strides=(2, 2)))


def concat() -> Any:
    """Two convolutions side by side, concatenated, and a third."""
    from tvm import relax

    return _network(lambda builder, conv: conv(builder.emit(relax.op.concat([conv(), conv()], axis=1))))


def _network(make: Callable[[Any, Any], Any], *, groups: int = 1, dtype: str = "float32") -> Any:
    """A module whose `main` is what `make` builds of 3x3 convolutions with eight channels on 8 x 8."""
    import numpy as np
    from tvm import relax

    data = relax.Var("data", tensor_type((1, 8, 8, 8), dtype))
    builder = relax.BlockBuilder()

    def conv(value: Any = data) -> Any:
        channels = int(type_of(value).shape[1])
        weight = relax.const(np.ones((8, channels // groups, 3, 3), dtype))
        return builder.emit(relax.op.nn.conv2d(value, weight, groups=groups, padding=1))

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
    return _TEXTURE.lower(mod, texture_target(), workarounds)


def source(mod: Any, workarounds: Sequence[Workaround]) -> str:
    """OpenCL source of the texture path, with these workarounds."""
    return opencl_source(_TEXTURE.build(lower(mod, workarounds), texture_target(), workarounds))
