"""Trials of the pieces of a network whose defect is known, without a compiler or a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from fake_device import a_plan
from fake_records import a_record

from harness.base.outcome import Outcome
from harness.measure.progress import Progress, SilentProgress
from harness.tools.explain.pieces import CuttableNetwork, Piece, with_shapes
from harness.tools.explain.reduced_network import SmallNetwork
from harness.tools.explain.trial import PieceTrial
from harness.tools.zoo.graph_layers import ImageGraph

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.base.plan import Plan
    from harness.measure.records.record import Record


def five_operators() -> CuttableNetwork:
    """Two convolutions, each with its bias's ReLU, and a max pool behind them."""
    net = ImageGraph("net", (1, 8, 4, 4))
    trunk = net.relu(net.conv(net.relu(net.conv(net.input, 8, 1)), 8, 1))
    model = net.finish((net.max_pool(trunk, 2, stride=2), (1, 8, 2, 2))).to_bytes()
    return CuttableNetwork(onnx.load_model_from_string(model))


@dataclass
class FakeTrials:
    """Whatever has a max pool is wrong, or of another outcome."""

    progress: Progress = field(default_factory=SilentProgress)
    meet: Callable[[], None] = lambda: None
    """Called at every trial of a reduction."""
    network: CuttableNetwork = field(default_factory=five_operators)
    plan: Plan = field(default_factory=a_plan)
    outcome: Outcome = Outcome.WRONG_RESULT
    judged: list[str] = field(default_factory=list)
    """Names of the networks that were run for a reduction."""

    def whole(self) -> Record:
        return a_record(outcome=self.outcome, message="output 0 is off by 3")

    def builds(self, network: SmallNetwork, name: str) -> bool:
        return self._record(network.model).outcome is Outcome.OK

    def run(self, piece: Piece, name: str) -> PieceTrial:
        return PieceTrial(piece, self._record(piece.model), Path(name))

    def network_of(self, piece: Piece, name: str) -> SmallNetwork:
        shapes = {tensor: self.network.shape(tensor) or () for tensor in piece.inputs}
        return with_shapes(piece, {tensor: np.ones(shape, np.float32) for tensor, shape in shapes.items()})

    def judge(self, network: SmallNetwork, name: str, *, as_shipped: bool = False) -> Record:
        self.meet()
        self.judged.append(name)
        return self._record(network.model)

    def answers(self, network: SmallNetwork, name: str) -> Sequence[Array]:
        return []

    def _record(self, model: bytes) -> Record:
        kinds: list[Any] = [node.op_type for node in onnx.load_model_from_string(model).graph.node]
        return self.whole() if "MaxPool" in kinds else a_record()
