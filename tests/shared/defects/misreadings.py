"""The smallest networks that TVM's ONNX importer misreads, and what it makes of them against ONNX's own reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from defects.presence import presence
from defects.sample import Probe
from harness.base.failures import MisreadOperator
from harness.compile.models.outline import static_shape
from harness.compile.paths.base import Workaround, edit_model
from harness.compile.paths.cpu import cpu_machine, run_on_cpu
from harness.tools.upstream.probe_answer import ProbeAnswer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]


def answer(example: Callable[[], Any], *applied: Workaround) -> ProbeAnswer:
    """Run the network on LLVM and in ONNX's reference; a workaround refuses it, or edits what is imported."""
    import numpy as np
    from onnx.reference import ReferenceEvaluator

    model = example()
    shape = static_shape(model.graph.input[0].type.tensor_type) or ()
    x = np.random.default_rng(0).random(shape, np.float32)
    reference = ReferenceEvaluator(model).run(None, {"x": x})
    for look in (workaround.edits.network for workaround in applied if workaround.edits.network):
        try:
            look(model)
        except MisreadOperator as refusal:
            return presence(False, str(refusal))
    try:
        computed = _on_llvm(model, x, applied)
    except Exception as raised:  # a release that raises misreads nothing
        return presence(False, f"TVM refuses the network: {type(raised).__name__}")
    for index, (mine, right) in enumerate(zip(computed, reference, strict=True)):
        if mine.shape != right.shape:
            return presence(True, f"output {index} has shape {mine.shape} instead of {right.shape}")
        if (error := float(np.abs(mine - right).max())) > 1e-3 * float(np.abs(right).max()):
            return presence(True, f"output {index} is off by {error:.3g}")
    return presence(False, "LLVM and ONNX's reference agree")


def _on_llvm(model: Any, x: Array, applied: Sequence[Workaround]) -> list[Array]:
    from tvm.relax.frontend.onnx import from_onnx

    return run_on_cpu(cpu_machine(edit_model(from_onnx(model, shape_dict={"x": list(x.shape)}), applied)), [x])


def network(
    operator: str, shape: Sequence[int], constants: Sequence[Any], opset: int = 18, outputs: int = 1, **attributes: Any
) -> Any:
    """One operator on `x`; the constants follow, None for an input that is left out."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    weights = {f"w{i}": np.asarray(array) for i, array in enumerate(constants) if array is not None}
    names = ["x", *(f"w{i}" if f"w{i}" in weights else "" for i in range(len(constants)))]
    ends = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ends, **attributes)],
        "misread",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info(end, TensorProto.FLOAT, None) for end in ends],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def resize(scales: Sequence[float] = (), sizes: Sequence[int] = (), **attributes: Any) -> Any:
    """One Resize of 7 x 9 pixels, by scales or to sizes."""
    import numpy as np

    inputs = [np.array([1, 1, *scales], np.float32)] if scales else [None, np.array([1, 1, *sizes], np.int64)]
    return network("Resize", (1, 1, 7, 9), [None, *inputs], **attributes)


def _conv_transpose() -> Any:
    import numpy as np

    weight = np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3)
    return network("ConvTranspose", (1, 1, 3, 3), [weight], strides=[3, 2], output_shape=[10, 8])


def _layer_norm() -> Any:
    import numpy as np

    return network("LayerNormalization", (2, 4), [np.ones(4, np.float32)], outputs=2)


def _batch_norm() -> Any:
    import numpy as np

    own = [np.array(numbers, np.float32) for numbers in ([1, 2], [0, 1], [3, -3], [4, 9])]
    return network("BatchNormalization", (2, 2, 3, 3), own, outputs=3, training_mode=1)


def _dropout() -> Any:
    import numpy as np

    return network("Dropout", (4, 8), [np.float32(0.5), np.bool_(True)], seed=1)


def roi_align(**attributes: Any) -> Any:
    """One RoiAlign of a single region."""
    import numpy as np

    rois, batch = np.array([[0, 0, 7, 7]], np.float32), np.array([0], np.int64)
    sizes = {"output_height": 3, "output_width": 3, "sampling_ratio": 2}
    return network("RoiAlign", (1, 1, 8, 8), [rois, batch], **sizes, **attributes)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "misread-resize-scales": partial(resize, scales=(1.7, 1.7), mode="linear"),
    "misread-resize-antialias": partial(resize, sizes=(4, 5), mode="linear", antialias=1),
    "misread-conv-transpose-shape": _conv_transpose,
    "misread-dropout-training": _dropout,
    "misread-roi-align-max": partial(roi_align, mode="max"),
    "misread-space-to-depth-mode": partial(network, "SpaceToDepth", (1, 2, 4, 6), [], 28, blocksize=2, mode="CRD"),
    "misread-layer-norm-statistics": _layer_norm,
    "misread-batch-norm-momentum": _batch_norm,
}
"""The network of each misreading; its input is `x`."""
PROBES: dict[str, Probe] = {name: partial(answer, example) for name, example in EXAMPLES.items()}
