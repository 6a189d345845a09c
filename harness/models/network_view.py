"""What is known of a network's tensors before it runs: types, shapes, constants, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.models.outline import all_nodes, constants, static_shape, tensor_types

if TYPE_CHECKING:
    from harness.models.spec import Array


class NetworkView:
    """The tensors of one ONNX network."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        return tensor_types(self.model)

    @cached_property
    def _constants(self) -> Mapping[str, Any]:
        return constants(self.model)

    def kind(self, name: str) -> Any | None:
        """ONNX's type of a tensor; None if inference does not find it."""
        return self._types.get(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor; None unless every extent is known."""
        return static_shape(self._types.get(name))

    def constant(self, node: Any, place: int) -> Array | None:
        """One of a node's inputs; None if it has none there, or one that is computed."""
        from onnx import numpy_helper

        name = node.input[place] if place < len(node.input) else ""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    def is_read(self, name: str) -> bool:
        """Return whether an operator or an output of the network takes a tensor."""
        outputs = {value.name for value in self.model.graph.output}
        return name in outputs or any(name in node.input for node in all_nodes(self.model.graph))
