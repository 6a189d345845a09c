"""The smallest modules that show a defect, for the probes."""

from __future__ import annotations

from typing import Any

from harness.paths.base import DeviceLimits


def conv(*, groups: int = 1, dtype: str = "float32", pool: bool = False) -> Any:
    """A convolution of eight channels on 8 x 8, then a max pool if asked for."""
    from tvm import relax

    data = relax.Var("data", relax.TensorType((1, 8, 8, 8), dtype))
    weight = relax.Var("weight", relax.TensorType((8, 8 // groups, 3, 3), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [data, weight]):
        with builder.dataflow():
            value = builder.emit(relax.op.nn.conv2d(data, weight, groups=groups, padding=1))
            if pool:
                value = builder.emit(relax.op.nn.max_pool2d(value, (2, 2), strides=(2, 2)))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def texture_target() -> Any:
    """The texture path's target for a device with Adreno's limits."""
    from harness.paths import PATHS

    return PATHS["texture"].target(DeviceLimits(), None)


def lower_as_shipped(mod: Any) -> Any:
    """TVM's own Relax passes of the texture path."""
    from harness.paths import PATHS

    return PATHS["texture"].lower(mod, texture_target(), ())


def source_as_shipped(mod: Any) -> str:
    """OpenCL source of the texture path with TVM's own passes."""
    from harness.paths import PATHS
    from harness.tvm_compat import opencl_source

    return opencl_source(PATHS["texture"].build(lower_as_shipped(mod), texture_target(), ()))
