"""The smallest networks that show a defect of the CLML path, for the probes, and what TVM offloads of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.compiler.compat import dtype_of, tensor_type, type_of
from harness.paths.base import ImageLimits
from harness.paths.clml import ClmlPath, partitioned
from harness.paths.clml.offload import offload_of
from harness.paths.workaround import Workaround
from harness.quirks.base import Presence, ProbeAnswer

Emit = Callable[[Any], Any]
"""Adds an expression to the network and returns the variable that holds it."""


def network(
    body: Callable[[Emit, Any], Any], shape: Sequence[int] = (1, 4, 8, 8), dtype: str = "float32", name: str = "data"
) -> Any:
    """A module whose `main` takes one tensor and returns what `body` makes of it."""
    from tvm import relax

    data = relax.Var(name, tensor_type(tuple(shape), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        with builder.dataflow():
            result = builder.emit_output(body(builder.emit, data))
        builder.emit_func_output(result)
    return builder.get()


def constant(*shape: int, dtype: str = "float32") -> Any:
    """A constant tensor, the same every time."""
    import numpy as np
    from tvm import relax

    return relax.const(np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype), dtype)


def conv(data: Any, channels: int = 4, **attributes: Any) -> Any:
    """A 3 x 3 convolution of four channels."""
    from tvm import relax

    weight = constant(channels, 4 // attributes.get("groups", 1), 3, 3)
    return relax.op.nn.conv2d(data, weight, **{"padding": 1, **attributes})


def conv_transpose(data: Any, **attributes: Any) -> Any:
    """A transposed 3 x 3 convolution of four channels."""
    from tvm import relax

    weight = constant(4, 4 // attributes.get("groups", 1), 3, 3, dtype=dtype_of(type_of(data)))
    return relax.op.nn.conv2d_transpose(data, weight, **attributes)


def batch_norm(emit: Emit, data: Any, **attributes: Any) -> Any:
    """Batch norm of four channels."""
    from tvm import relax

    normed = emit(relax.op.nn.batch_norm(data, *(constant(4) for _ in range(4)), axis=1, **attributes))
    return relax.TupleGetItem(normed, 0)


def parts(mod: Any, applied: Sequence[Workaround]) -> Any:
    """The module as TVM cuts it for CLML, with these workarounds."""
    return partitioned(mod, ClmlPath().target(ImageLimits(), None), applied)


def offloaded(mod: Any, applied: Sequence[Workaround]) -> Counter[str]:
    """The composites that TVM would hand to CLML, with these workarounds."""
    report = offload_of(parts(mod, applied)) or {"subgraphs": []}
    return sum((Counter(part["composites"]) for part in report["subgraphs"]), Counter())


def offers(composite: str, mod: Any, applied: Sequence[Workaround]) -> ProbeAnswer:
    """PRESENT if this composite is offloaded, which the runtime refuses or computes differently."""
    found = offloaded(mod, applied)
    if found[composite]:
        return ProbeAnswer(Presence.PRESENT, f"{composite} is offloaded")
    return ProbeAnswer(Presence.ABSENT, f"offloaded: {', '.join(found) or 'nothing'}")


def runtime_source() -> str:
    """TVM's own CLML runtime, whose source its wheels ship; empty if this one does not."""
    import tvm

    file = Path(tvm.__file__).parent / "src" / "runtime" / "extra" / "contrib" / "clml" / "clml_runtime.cc"
    return file.read_text(encoding="utf-8") if file.exists() else ""
