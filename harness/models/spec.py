"""What every model source offers: a name, one self-contained ONNX file, and inputs that are the same every time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class InputSpec:
    """One input of a model: static shape, numpy name of the number format."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


class ModelSource(Protocol):
    """A model by name."""

    @property
    def name(self) -> str:
        """What stands in the case id: made of `[a-z0-9_]`."""

    def onnx_file(self, cache_dir: Path) -> Path:
        """Path of a self-contained ONNX file, the same bytes every time; made in `cache_dir` where that is needed.

        Raises `ModelError` if the model cannot be used.
        """


def seeded_inputs(specs: Iterable[InputSpec], seed: int) -> dict[str, Array]:
    """Inputs by name: standard normal for real numbers, 0 and 1 for integers and booleans (valid for any index).

    Each input has its own stream, so that adding an input does not change the others.
    """
    import numpy as np

    def fill(spec: InputSpec) -> Array:
        rng = np.random.default_rng([seed, *hashlib.sha256(spec.name.encode()).digest()])
        if np.issubdtype(np.dtype(spec.dtype), np.floating):
            return rng.standard_normal(spec.shape, dtype=np.float32).astype(spec.dtype)
        return rng.integers(0, 2, spec.shape).astype(spec.dtype)

    return {spec.name: fill(spec) for spec in specs}
