"""Small libraries to run on a device: one that computes, one that naps or dies as its input says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from device_runner.device import Loadable

NO_NAP, LONG_NAP = 0, 60_000_000
"""Microseconds."""


def doubled_relu(folder: Path, path: str) -> Loadable:
    """A float32 matrix (4, 8) gives twice its positive part."""
    from tvm import relax

    def compute(builder: Any, x: Any) -> Any:
        positive = builder.emit(relax.op.nn.relu(x))
        return builder.emit_output(relax.op.add(positive, positive))

    return _compile(compute, (4, 8), "float32", path, folder / f"doubled_relu_{path}.so")


def convolved(folder: Path, path: str) -> Loadable:
    """A float32 image (1, 4, 8, 8) gives the sums of its channels' neighbourhoods of 3 x 3, four times."""
    import numpy as np
    from tvm import relax

    def compute(builder: Any, x: Any) -> Any:
        weights = relax.const(np.ones((4, 4, 3, 3), np.float32))
        return builder.emit_output(relax.op.nn.conv2d(x, weights, padding=(1, 1)))

    return _compile(compute, (1, 4, 8, 8), "float32", path, folder / f"convolved_{path}.so")


def misbehaving(folder: Path) -> Loadable:
    """Host code; int32 (microseconds, signal, signal) sleeps, then signals itself and its parent; 0 is no signal."""
    from tvm import te, tirx

    def misbehave(x: Any) -> Any:
        nap = tirx.call_extern("int32", "usleep", x[0])
        itself = tirx.call_extern("int32", "raise", x[1])
        parent = tirx.call_extern("int32", "kill", tirx.call_extern("int32", "getppid"), x[2])
        return te.compute((1,), lambda _: nap + itself + parent, "misbehave")

    def compute(builder: Any, x: Any) -> Any:
        return builder.emit_output(builder.call_te(misbehave, x))

    return _compile(compute, (3,), "int32", "cpu", folder / "misbehaving.so")


def deaf(folder: Path) -> Loadable:
    """Host code; int32 (microseconds, signal) ignores the signal, then sleeps."""
    from tvm import te, tirx

    def sleep_deeply(x: Any) -> Any:
        ignored = tirx.call_extern("int32", "sigignore", x[1])
        return te.compute((1,), lambda _: ignored + tirx.call_extern("int32", "usleep", x[0]), "sleep_deeply")

    def compute(builder: Any, x: Any) -> Any:
        return builder.emit_output(builder.call_te(sleep_deeply, x))

    return _compile(compute, (2,), "int32", "cpu", folder / "deaf.so")


def _compile(
    compute: Callable[[Any, Any], Any], shape: tuple[int, ...], dtype: str, path_name: str, library: Path
) -> Loadable:
    from tvm import relax

    from harness.base.case import Precision
    from harness.compile.paths import PATHS
    from harness.compile.paths.base import ImageLimits
    from harness.compile.paths.lowered_module import add_host_entry, vdevices
    from harness.compile.quirks import quirks_for

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = compute(builder, x)
        builder.emit_func_output(result)
    path, quirks = PATHS[path_name], quirks_for(path_name, Precision.FLOAT32, as_shipped=False)
    target = path.target(ImageLimits(), None)
    lowered = path.lower(builder.finalize(), target, quirks)
    path.build(add_host_entry(lowered), target, quirks).export_library(str(library))
    sha256 = hashlib.sha256(library.read_bytes()).hexdigest()
    return Loadable(library, sha256, vdevices(lowered), "cpu" if path_name == "cpu" else "opencl")
