"""The networks of the zoo. A new one is a function and a line in `ZOO`.

A line names the place of the function, so that only the networks that are wanted are imported.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.names import load
from harness.compile import models
from harness.compile.models.named import labelled_data
from harness.compile.models.spec import Inputs, LabelledData, Original
from harness.tools.shared.kept_file import keep_file
from harness.tools.zoo.digits import HELD_OUT, NETWORK, TrainedNetwork

if TYPE_CHECKING:
    from harness.tools.zoo.graph import Network


@dataclass(frozen=True)
class ZooModel:
    """A network of the zoo."""

    name: str
    place: str
    """`MODULE:NAME` of the function that builds it."""
    inputs: str = ""
    """Place of how some of its inputs are drawn; empty if none is special."""
    held_out: Path | None = None
    """File of the labelled data that it is asked about."""

    def build(self) -> Network | TrainedNetwork:
        """Build the network."""
        network: Network | TrainedNetwork = load(self.place)()
        return network

    def onnx_file(self, cache_dir: Path) -> Path:
        """Return the network's file in `cache_dir`, built on first use and again whenever its recipe changes."""
        file = cache_dir / f"{self.name}-{self._recipe()}.onnx"
        keep_file(file, lambda: self.build().to_bytes())
        with suppress(OSError):  # read now, which `adreno-bench cache` goes by; a read-only cache is still a cache
            os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))
        return file

    def original(self, cache_dir: Path) -> Original:
        """Return the file itself: it is built in the form that is compiled."""
        return Original(self.onnx_file(cache_dir))

    def outline(self) -> Any:
        """Return the network without the data of its weights, to be looked at."""
        return self.build().outline()

    @property
    def labelled(self) -> LabelledData | None:
        """Labelled data that it is asked about."""
        return labelled_data(self.held_out, "", Path()) if self.held_out else None

    def input_values(self, cache_dir: Path) -> Inputs:
        """Return how some of its inputs are drawn."""
        return dict(load(self.inputs)) if self.inputs else {}

    def changes(self, cache_dir: Path) -> tuple[str, ...]:
        """Nothing: it is built as it is to be compiled."""
        return ()

    @property
    def _sources(self) -> list[Path]:
        """Our sources that decide the bytes."""
        return [*sorted(Path(__file__).parent.glob("*.py")), NETWORK]

    def _recipe(self) -> str:
        """Short hash of all that decides the bytes: our sources, and the libraries that make numbers and protobufs."""
        libraries = " ".join(f"{name}={version(name)}" for name in ("numpy", "onnx", "protobuf"))
        sources = b"".join(source.read_bytes() for source in self._sources)
        return hashlib.sha256(libraries.encode() + sources).hexdigest()[:12]


@dataclass(frozen=True)
class PreparedZooModel(ZooModel):
    """A network of the zoo as exporters write it, which is prepared before TVM sees it."""

    @property
    def _sources(self) -> list[Path]:
        return [*super()._sources, *sorted(Path(models.__file__).with_name("preparation").glob("*.py"))]

    def onnx_file(self, cache_dir: Path) -> Path:
        """Return the prepared network's file in `cache_dir`."""
        file = cache_dir / f"{self.name}-{self._recipe()}-prepared.onnx"
        return keep_file(file, lambda: bytes(self._prepared()[0].SerializeToString(deterministic=True)))

    def original(self, cache_dir: Path) -> Original:
        """Return the network as it is built."""
        return Original(super().onnx_file(cache_dir))

    def outline(self) -> Any:
        """Return the prepared network, to be looked at."""
        return self._prepared()[0]

    def changes(self, cache_dir: Path) -> tuple[str, ...]:
        """Return what is changed in it before it is compiled."""
        return tuple(self._prepared()[1])

    def _prepared(self) -> tuple[Any, list[str]]:
        import onnx

        from harness.compile.models.preparation import prepare

        model = onnx.load_model_from_string(self.build().to_bytes())
        changes = prepare(model)
        return model, changes


ZOO: tuple[ZooModel, ...] = (
    ZooModel("mobilenet_v1", "harness.tools.zoo.mobilenet:mobilenet_v1"),
    ZooModel("mobilenet_v2", "harness.tools.zoo.mobilenet:mobilenet_v2"),
    ZooModel("mobilenet_v3_small", "harness.tools.zoo.mobilenet_v3_small:build"),
    ZooModel("efficientnet_lite0", "harness.tools.zoo.efficientnet_lite0:build"),
    ZooModel("squeezenet1_1", "harness.tools.zoo.squeezenet1_1:build"),
    ZooModel("resnet18", "harness.tools.zoo.resnet:resnet18"),
    ZooModel("resnet50", "harness.tools.zoo.resnet:resnet50"),
    ZooModel("bottlenecks", "harness.tools.zoo.resnet:bottlenecks"),
    ZooModel("densenet121", "harness.tools.zoo.densenet121:build"),
    ZooModel("inception_v3", "harness.tools.zoo.inception_v3:build"),
    ZooModel("deeplab_v3", "harness.tools.zoo.deeplab_v3:build"),
    ZooModel("detector", "harness.tools.zoo.detector:build"),
    ZooModel("encoder_block", "harness.tools.zoo.transformer:encoder_block"),
    ZooModel(
        "decoder_layer",
        "harness.tools.zoo.transformer:decoder_layer",
        "harness.tools.zoo.transformer:DECODER_INPUTS",
    ),
    ZooModel(
        "masked_encoder",
        "harness.tools.zoo.transformer:masked_encoder",
        "harness.tools.zoo.transformer:MASKED_INPUTS",
    ),
    PreparedZooModel("lstm", "harness.tools.zoo.recurrent:lstm"),
    PreparedZooModel("gru", "harness.tools.zoo.recurrent:gru"),
    ZooModel("digits", "harness.tools.zoo.digits:build", held_out=HELD_OUT),
    ZooModel("tiny", "harness.tools.zoo.tiny:build"),
)
