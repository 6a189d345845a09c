"""The zoo: real networks, built here layer by layer. A new one is a file of its own and a line in `ZOO`."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from device_runner.files import write_whole
from harness.models import graph
from harness.models.spec import Inputs
from harness.models.zoo import mobilenet_v1, resnet18, squeezenet1_1, tiny


@dataclass(frozen=True)
class ZooModel:
    """A network of the zoo: `build` gives the bytes of its ONNX file."""

    name: str
    build: Callable[[], bytes]
    inputs: Inputs = field(default_factory=dict)
    """How some of its inputs are drawn."""

    def onnx_file(self, cache_dir: Path) -> Path:
        """The network's file in `cache_dir`, built on first use and again whenever its recipe changes."""
        file = cache_dir / f"{self.name}-{self._recipe()}.onnx"
        if not file.exists():
            return write_whole(file, self.build())
        with suppress(OSError):  # read now, which `adreno-bench cache` goes by; a read-only cache is still a cache
            os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))
        return file

    def changes(self, cache_dir: Path) -> tuple[str, ...]:
        """Nothing: it is built as it is to be compiled."""
        return ()

    def _recipe(self) -> str:
        """Short hash of all that decides the bytes: our sources, and the libraries that make numbers and protobufs."""
        sources = (Path(graph.__file__), *sorted(Path(__file__).parent.glob("*.py")))
        libraries = " ".join(f"{name}={version(name)}" for name in ("numpy", "onnx", "protobuf"))
        return hashlib.sha256(libraries.encode() + b"".join(s.read_bytes() for s in sources)).hexdigest()[:12]


ZOO: tuple[ZooModel, ...] = (
    ZooModel("mobilenet_v1", mobilenet_v1.build),
    ZooModel("resnet18", resnet18.build),
    ZooModel("squeezenet1_1", squeezenet1_1.build),
    ZooModel("tiny", tiny.build),
)
