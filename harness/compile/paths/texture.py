"""Path `texture`: activations in images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.compile.paths.opencl import OpenCLPath


@dataclass(frozen=True)
class TexturePath(OpenCLPath):
    """Activations as NCHW4c in RGBA images, weights as OIHW4o in buffers. Target `qcom/adreno-opencl-texture`.

    One key of the target makes the difference: TVM's passes for it convert layouts and annotate memory scopes. Sources:
    apache/tvm #7687, #11161; python/tvm/relax/backend/adreno/pipeline.py.
    """

    name: str = "texture"
    family: ClassVar[str] = "texture"
    keys: ClassVar[tuple[str, ...]] = (*OpenCLPath.keys, "texture")
