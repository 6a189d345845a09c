"""Probes of the CLML path's quirks: parts of the smallest networks that show them, and what TVM offloads of these."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from defects.presence import presence
from defects.sample import Emit, Probe, network
from harness.compile.compiler.compat import dtype_of, type_of
from harness.compile.compiler.pass_runner import run_passes
from harness.compile.compiler.passes import passes_before
from harness.compile.paths.base import ImageLimits, Workaround, edit_model, edit_relax
from harness.compile.paths.clml import ClmlPath, relax_passes
from harness.compile.paths.clml.offload import offload_of
from harness.compile.quirks.clml_edits import inner_outputs, offloaded_parts
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

_CREATE_CONVOLUTION = re.compile(r"CLML_CALL\(clCreateMLOpConvolutionForwardQCOM,(.*?)\);", re.DOTALL)
_SWAPPED_WINDOW = "{in_dims.w, in_dims.h}"


def constant(*shape: int, dtype: str = "float32") -> Any:
    """Return a constant tensor, the same every time."""
    import numpy as np
    from tvm import relax

    return relax.const(np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype), dtype)


def conv(data: Any, channels: int = 4, **attributes: Any) -> Any:
    """Return a 3 x 3 convolution of four channels."""
    from tvm import relax

    weight = constant(channels, 4 // attributes.get("groups", 1), 3, 3)
    return relax.op.nn.conv2d(data, weight, **{"padding": 1, **attributes})


def conv_transpose(data: Any, **attributes: Any) -> Any:
    """Return a transposed 3 x 3 convolution of four channels."""
    from tvm import relax

    weight = constant(4, 4 // attributes.get("groups", 1), 3, 3, dtype=dtype_of(type_of(data)))
    return relax.op.nn.conv2d_transpose(data, weight, **attributes)


def batch_norm(emit: Emit, data: Any, **attributes: Any) -> Any:
    """Batch norm of four channels."""
    from tvm import relax

    normed = emit(relax.op.nn.batch_norm(data, *(constant(4) for _ in range(4)), axis=1, **attributes))
    return relax.TupleGetItem(normed, 0)


def partition_module(mod: Any, target: Any, workarounds: Sequence[Workaround]) -> Any:
    """Return the module after TVM cut it into parts and before code is generated from them; it carries its report."""
    with target:
        return run_passes(passes_before(relax_passes(target, workarounds), "RunCodegen"), mod)


def parts(mod: Any, applied: Sequence[Workaround]) -> Any:
    """Return the module as TVM cuts it for CLML, with these workarounds."""
    return partition_module(mod, ClmlPath().target(ImageLimits(), None), applied)


def count_composites(mod: Any, applied: Sequence[Workaround]) -> Counter[str]:
    """Return the composites that TVM would hand to CLML, with these workarounds."""
    report = offload_of(parts(mod, applied)) or {"subgraphs": []}
    return sum((Counter(part["composites"]) for part in report["subgraphs"]), Counter())


def offers(
    composite: str, body: Callable[[Any, Emit, Any], Any], shape: Sequence[int] = (1, 4, 8, 8), dtype: str = "float32"
) -> Probe:
    """Return a probe: PRESENT if this composite, which the runtime refuses or computes differently, is offloaded.

    `body` makes the network of TVM's operators, what adds one to it, and its input.
    """

    def probe(*applied: Workaround) -> ProbeAnswer:
        from tvm import relax

        counts = count_composites(network(lambda emit, x: emit(body(relax.op, emit, x)), shape, dtype), applied)
        others = f"offloaded: {', '.join(counts) or 'nothing'}"
        return presence(counts[composite] > 0, f"{composite} is offloaded", others)

    return probe


def imports_of_backend(*_applied: Workaround) -> ProbeAnswer:
    """Read whether the Adreno backend imports its CLML module."""
    from tvm.relax.backend import adreno

    imported = "clml" in inspect.getsource(adreno)
    return presence(
        not imported, f"relax/backend/adreno/__init__.py {'mentions' if imported else 'does not mention'} clml"
    )


def unscaled_batch_norm(*applied: Workaround) -> ProbeAnswer:
    """Partition a batch norm without scaling, and look whether that is still all that says so."""
    mod = network(lambda emit, x: emit(batch_norm(emit, x, scale=False)))
    unused = "scale=False" in parts(mod, applied).script()
    return presence(unused, f"offloaded with {'an unused gamma' if unused else 'a gamma of one'}")


def batch_norm_in_mixed_precision(*applied: Workaround) -> ProbeAnswer:
    """Partition convolution, batch norm and activation in mixed precision."""
    import tvm
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.nn.relu(emit(batch_norm(emit, emit(conv(x)))))))
    convert = [relax.transform.ToMixedPrecision("float16"), relax.transform.FoldConstant()]
    counts = count_composites(tvm.transform.Sequential(convert)(edit_model(mod, applied)), applied)
    is_cut = set(counts) != {"openclml.relu.bias.nn.conv2d"}
    return presence(is_cut, f"one block becomes {', '.join(counts) or 'nothing'}")


def relu6(*applied: Workaround) -> ProbeAnswer:
    """Partition a ReLU6."""
    from tvm import relax

    counts = count_composites(network(lambda emit, x: emit(relax.op.clip(x, 0, 6))), applied)
    return presence(not counts, f"of clip(x, 0, 6) are offloaded: {', '.join(counts) or 'nothing'}")


def transposed_conv_on_opencl(*applied: Workaround) -> ProbeAnswer:
    """Partition a transposed convolution of float64, which is not offloaded, and legalise it."""
    import tvm
    from tvm import relax

    mod = parts(network(lambda emit, x: emit(conv_transpose(x)), dtype="float64"), ())
    passes = edit_relax([relax.transform.LegalizeOps()], applied)
    left = "nn.conv2d_transpose(" in str(tvm.transform.Sequential(passes)(mod))
    return presence(left, f"not legalised: {'relax.nn.conv2d_transpose' if left else 'nothing'}")


def reused_output(*applied: Workaround) -> ProbeAnswer:
    """Partition three convolutions in a row, each of which something outside reads."""
    from tvm import relax

    def body(emit: Emit, x: Any) -> Any:
        first = emit(conv(x))
        second = emit(conv(first))
        return emit(relax.op.concat([first, second, emit(conv(second))], axis=1))

    offloaded = offloaded_parts(parts(network(body), applied)).values()
    inner = [result for part in offloaded for result in inner_outputs(part)]
    return presence(bool(inner), f"{len(inner)} results of a part are returned, and read in it before the end")


def global_pool(*applied: Workaround) -> ProbeAnswer:
    """Partition the mean over 4 x 8, and look at the window in TVM's runtime."""
    source = _runtime_source()
    if source and _SWAPPED_WINDOW not in source:
        return presence(False, f"TVM's runtime has no window {_SWAPPED_WINDOW} any more")
    mean = offers(
        "openclml.nn.global_avg_pool2d", lambda op, _, x: op.mean(x, [2, 3], keepdims=True), shape=(1, 4, 4, 8)
    )
    return mean(*applied)


def tuning_cache_of_conv(*_applied: Workaround) -> ProbeAnswer:
    """Look what TVM's runtime passes for the tuning cache."""
    calls = _CREATE_CONVOLUTION.findall(_runtime_source())
    if not calls:
        return ProbeAnswer(Presence.CANNOT_TELL, "this TVM does not ship the source of its CLML runtime")
    passed = calls[0].rpartition(",")[2].strip()
    return presence(passed == "nullptr", f"the tuning cache is given as {passed}")


def name_of_runtime(*_applied: Workaround) -> ProbeAnswer:
    """Read which name is asked for."""
    from tvm.relax.backend.adreno import clml

    asked = "relax.op.is_openclml_runtime_enabled" in inspect.getsource(clml.is_clml_runtime_enabled)
    return presence(asked, f"is_clml_runtime_enabled() answers {clml.is_clml_runtime_enabled()}")


def _runtime_source() -> str:
    """TVM's own CLML runtime, whose source its wheels ship; empty if this one does not."""
    import tvm

    file = Path(tvm.__file__).parent / "src" / "runtime" / "extra" / "contrib" / "clml" / "clml_runtime.cc"
    return file.read_text(encoding="utf-8") if file.exists() else ""


PROBES: dict[str, Probe] = {
    "clml-not-imported": imports_of_backend,
    "clml-batch-norm-flags": unscaled_batch_norm,
    "clml-mixed-batch-norm": batch_norm_in_mixed_precision,
    "clml-relu6": relu6,
    "clml-unplaced-operand": offers("openclml.bias.nn.conv2d", lambda op, _, x: op.add(constant(1, 4, 1, 1), conv(x))),
    "clml-number-format": offers("openclml.reshape", lambda op, _, x: op.reshape(x, (1, 256)), dtype="int64"),
    "clml-tensor-shape": offers("openclml.nn.conv2d", lambda _op, _, x: conv(x), shape=(2, 4, 8, 8)),
    "clml-grouped-conv": offers("openclml.nn.conv2d", lambda _op, _, x: conv(x, groups=4)),
    "clml-inner-result": offers(
        "openclml.relu.nn.conv2d",
        lambda op, emit, x: op.add(convolved := emit(conv(x)), op.nn.relu(convolved)),
    ),
    "clml-bias-shape": offers("openclml.bias.nn.conv2d", lambda op, _, x: op.add(conv(x), constant(1, 4, 8, 8))),
    "clml-pad-conv": offers(
        "openclml.pad.nn.conv2d",
        lambda op, _, x: conv(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1), pad_value=1.0), padding=0),
    ),
    "clml-conv-transpose": offers(
        "openclml.bn.nn.conv2d_transpose", lambda _op, emit, x: batch_norm(emit, emit(conv_transpose(x)))
    ),
    "clml-transpose-layout": transposed_conv_on_opencl,
    "clml-epsilon": offers(
        "openclml.bn.bias.nn.conv2d",
        lambda op, emit, x: batch_norm(emit, op.add(conv(x), constant(1, 4, 1, 1)), epsilon=1e-7),
    ),
    "clml-constant-left": offers("openclml.relax.subtract", lambda op, _, x: op.subtract(constant(1, 4, 8, 8), x)),
    "clml-same-operand": offers("openclml.relax.add", lambda op, _, x: op.add(x, x)),
    "clml-pooling": offers("openclml.nn.max_pool2d", lambda op, _, x: op.nn.max_pool2d(x, (2, 2), layout="NHWC")),
    "clml-global-pool": global_pool,
    "clml-reused-output": reused_output,
    "clml-softmax-axis": offers("openclml.relax.nn.softmax", lambda op, _, x: op.nn.softmax(x, axis=2)),
    "clml-untuned-conv": tuning_cache_of_conv,
    "clml-runtime-name": name_of_runtime,
}
