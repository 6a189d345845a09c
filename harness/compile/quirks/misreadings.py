"""Networks that TVM's ONNX importer reads wrongly: it raises nothing, and every path computes something else.

Such a network is refused by name before anything is compiled, and only for the attributes and shapes that are misread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.base.failures import MisreadOperator
from harness.compile.models.outline import NetworkView, all_nodes, attribute_of, node_name
from harness.compile.paths.base import Edits
from harness.compile.quirks.base import Quirk

_FRONTEND = "python/tvm/relax/frontend/onnx/onnx_frontend.py"


Finder = Callable[[Any, NetworkView], str]
"""What is misread of an operator, for a person; empty if it is read right, or if that cannot be known."""


@dataclass(frozen=True)
class Misreading:
    """One kind of operator that is misread."""

    id: str
    operator: str
    title: str
    find: Finder
    hint: str
    since: str = "0.25"

    def refuse(self, model: Any) -> None:
        """Raise MisreadOperator for the first operator of an ONNX network that is misread."""
        nodes = [node for node in all_nodes(model.graph) if node.op_type == self.operator]
        view = NetworkView(model) if nodes else None
        for node in nodes:
            if view and (mistake := self.find(node, view)):
                raise MisreadOperator(
                    f"TVM's ONNX importer misreads {self.operator} {node_name(node)!r}: {mistake}", hint=self.hint
                )

    @property
    def quirk(self) -> Quirk:
        """The quirk for the table."""
        return Quirk(
            self.id,
            self.title,
            upstream=f"{_FRONTEND}: {self.operator}",
            workaround=f"a network with such a {self.operator} is refused before anything is compiled: {self.hint}",
            edits=Edits(network=self.refuse),
            since=self.since,
        )


def _scale_of_no_whole_pixels(node: Any, view: NetworkView) -> str:
    from harness.compile.models.preparation.resizing import misread_axes

    for axis in misread_axes(node, view):
        return f"it enlarges {axis.before} pixels by {axis.read}/{axis.before} where the network says {axis.scale:.6g}"
    return ""


def _antialias(node: Any, view: NetworkView) -> str:
    from harness.compile.models.preparation.resizing import is_smoothed, resized_axes

    return "it leaves out antialias" if is_smoothed(node, resized_axes(node, view)) else ""


def _training_dropout(node: Any, view: NetworkView) -> str:
    ratio, training = view.constant(node, 1), view.constant(node, 2)
    active = training is not None and bool(training.any()) and (ratio is None or bool(ratio.any()))
    return "it takes training_mode for inference" if active else ""


def _more_results(node: Any, view: NetworkView) -> str:
    return ", ".join(name for name in node.output[1:] if name and view.is_read(name))


def _running_statistics(node: Any, view: NetworkView) -> str:
    momentum, results = attribute_of(node, "momentum", 0.9), _more_results(node, view)
    if not attribute_of(node, "training_mode", 0) or not results or momentum == 0.5:
        return ""
    return f"it takes momentum {momentum:.6g} for {1 - momentum:.6g} in its results {results}"


MISREADINGS = (
    Misreading(
        "misread-resize-scales",
        "Resize",
        "scales that do not make whole pixels are replaced by the ratio of the extents",
        _scale_of_no_whole_pixels,
        "export it with sizes in place of scales (torch: recompute_scale_factor=True)",
    ),
    Misreading(
        "misread-resize-antialias",
        "Resize",
        "antialias is left out where an image is made smaller",
        _antialias,
        "export it without antialias, or scale the image before it enters the network",
    ),
    Misreading(
        "misread-conv-transpose-shape",
        "ConvTranspose",
        "output_shape is left out",
        lambda node, _: "it leaves out output_shape" if attribute_of(node, "output_shape", []) else "",
        "export it with pads and output_padding in place of output_shape",
    ),
    Misreading(
        "misread-dropout-training",
        "Dropout",
        "training_mode is left out",
        _training_dropout,
        "export it for inference (torch: model.eval())",
        since="0.26",  # before, no dropout could be built
    ),
    Misreading(
        "misread-roi-align-max",
        "RoiAlign",
        "mode max is computed otherwise than ONNX defines it",
        lambda node, _: "it computes mode max otherwise" if attribute_of(node, "mode", "avg") == "max" else "",
        "export it with mode avg",
    ),
    Misreading(
        "misread-space-to-depth-mode",
        "SpaceToDepth",
        "mode CRD is left out",
        lambda node, _: "it takes mode CRD for DCR" if attribute_of(node, "mode", "DCR") == "CRD" else "",
        "export it with mode DCR, or as Reshape, Transpose and Reshape",
    ),
    Misreading(
        "misread-layer-norm-statistics",
        "LayerNormalization",
        "the mean and the inverse deviation, its second and third result, are left empty",
        lambda node, view: (more := _more_results(node, view)) and f"its results {more} are left empty",
        "compute them with ReduceMean",
    ),
    Misreading(
        "misread-batch-norm-momentum",
        "BatchNormalization",
        "in training mode, momentum is taken for 1 - momentum in the running mean and variance",
        _running_statistics,
        "export it for inference (torch: model.eval())",
    ),
)
QUIRKS = tuple(misreading.quirk for misreading in MISREADINGS)
