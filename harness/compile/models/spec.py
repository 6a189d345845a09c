"""What every model source offers: a name, one self-contained ONNX file, and inputs that are the same every time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from device_runner.device import Array
from device_runner.names import suggestion
from harness.base.failures import ModelError
from harness.base.model import Distribution

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class InputSpec:
    """One input of a model: static shape, numpy name of the number format."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class FixedInput:
    """An input that every element of which is one number for good: it is part of what is compiled."""

    spec: InputSpec
    number: float

    def array(self) -> Array:
        """Return its elements."""
        import numpy as np

        return np.full(self.spec.shape, self.number, self.spec.dtype)


@dataclass(frozen=True)
class Original:
    """A model as a person has it, before it is prepared for the compiler: what the truth is asked about."""

    onnx: Path
    """The ONNX file, given or made of the program."""
    program: Path | None = None
    """The file in another format (`harness.base.tool.ModelFormat`); None if ONNX was given."""
    judge: str = ""
    """Place of what computes the program."""
    trust: bool = False
    """Whether code in the program may run."""
    fixed: tuple[FixedInput, ...] = ()
    """Inputs that what is compiled has no longer."""

    def with_fixed(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return inputs of what is compiled, with those that were fixed."""
        return {**inputs, **{fixed.spec.name: fixed.array() for fixed in self.fixed}}


Inputs = Mapping[str, Distribution]
"""How some inputs of a model are drawn, by name."""


class LabelledData(Protocol):
    """Labelled data that a model is asked about, as a tool reads them (`Tool.labelled`)."""

    @property
    def file(self) -> Path:
        """Where they are."""

    def load_inputs(self, specs: Sequence[InputSpec]) -> Array:
        """Return the inputs for a model with these. Raises `ModelError` for data that do not fit it."""

    @property
    def digests(self) -> Mapping[str, str]:
        """Hashes of all that decides what is asked, by what it is."""

    @property
    def question(self) -> Mapping[str, str]:
        """Fields of an oracle's job (`harness.compile.artifacts.oracle.Question`)."""


class ModelSource(Protocol):
    """A model by name."""

    @property
    def name(self) -> str:
        """What stands in the case id: made of `[a-z0-9_]`."""

    @property
    def labelled(self) -> LabelledData | None:
        """Labelled data that it is asked about, if there are any."""

    def onnx_file(self, cache_dir: Path) -> Path:
        """Return the path of a self-contained ONNX file, the same bytes every time; made in `cache_dir` if needed.

        Raises `ModelError` if the model cannot be used.
        """

    def input_values(self, cache_dir: Path) -> Path | Inputs:
        """Return the file of the inputs that it is run on, or how some are drawn. Raises `ModelError`."""

    def original(self, cache_dir: Path) -> Original:
        """Return the model before it is prepared. Raises `ModelError`."""

    def changes(self, cache_dir: Path) -> tuple[str, ...]:
        """Return what is changed in the model that was given before it is compiled, for a person."""


def seeded_inputs(specs: Iterable[InputSpec], seed: int, drawn: Inputs | None = None) -> dict[str, Array]:
    """Return inputs by name, each drawn as `drawn` says.

    The others are standard normal if they are real numbers, and 0 and 1 if they are integers or booleans. Each input
    has its own stream, so that adding an input does not change the others.
    """
    import numpy as np

    def fill(spec: InputSpec) -> Array:
        rng = np.random.default_rng([seed, *hashlib.sha256(spec.name.encode()).digest()])
        if drawn and spec.name in drawn:
            return _draw(drawn[spec.name], rng, spec.shape).astype(spec.dtype)
        if np.issubdtype(np.dtype(spec.dtype), np.floating):
            return rng.standard_normal(spec.shape, dtype=np.float32).astype(spec.dtype)
        return rng.integers(0, 2, spec.shape).astype(spec.dtype)

    return {spec.name: fill(spec) for spec in specs}


def _draw(distribution: Distribution, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    import numpy as np

    first, last = distribution.arguments[0], distribution.arguments[-1]
    if distribution.kind == "normal":
        return rng.normal(first, last, shape)
    if distribution.kind == "uniform":
        return rng.uniform(first, last, shape)
    if distribution.kind == "integers":
        return rng.integers(int(first), int(last), shape, endpoint=True)
    return np.full(shape, first)


def require_drawable(inputs: Inputs, specs: Sequence[InputSpec]) -> None:
    """Raise `ModelError` unless each distribution is of an input of the model, and gives numbers that it can hold."""
    import numpy as np

    by_name = {spec.name: np.dtype(spec.dtype) for spec in specs}
    for name, distribution in inputs.items():
        if name not in by_name:
            hint = suggestion(name, by_name, otherwise="its inputs:")
            raise ModelError(f"the model has no input {name!r} to draw from {distribution}", hint=hint)
        dtype, numbers = by_name[name], distribution.arguments
        if dtype.kind == "f":
            continue
        lowest, highest = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        whole = distribution.kind == "integers" or (distribution.kind == "constant" and numbers[0].is_integer())
        if not whole or not lowest <= min(numbers) <= max(numbers) <= highest:
            raise ModelError(
                f"the input {name!r} holds {dtype}, and {distribution} has values that it cannot hold",
                hint=f"for example integers(0, {min(highest, 9)})",
            )
