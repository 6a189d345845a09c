"""A model by name: a network of the zoo, or a file that the suite names.

A user's file is made into one self-contained `.onnx` file with static shapes, without the remains of an exporter.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from device_runner.files import write_whole
from device_runner.names import MOST_NAMES, load, suggestion
from harness.base.failures import ModelError, UsageError
from harness.base.model import SUFFIXES
from harness.base.tables import counted
from harness.base.tool import ModelFormat, tools
from harness.compile.models.index_ranges import (
    IndexRange,
    index_ranges,
    require_drawn_in_range,
    require_in_range,
    usual_inputs,
)
from harness.compile.models.input_files import load_inputs
from harness.compile.models.limited_fork import run_limited
from harness.compile.models.named import NamedModel, named_models
from harness.compile.models.onnx_inputs import Fixes, Shapes, fix_inputs, fix_shapes, input_specs, require_tensors
from harness.compile.models.onnx_read import bring_in_external_data, parse, require_numbers, write_dense
from harness.compile.models.outline import check, double_operators
from harness.compile.models.spec import FixedInput, Inputs, InputSpec, LabelledData, Original, require_drawable


@dataclass(frozen=True)
class _Options:
    """How a file is to be prepared, as the key of a cache."""

    shapes: tuple[tuple[str, Sequence[int] | int], ...]
    clean: bool
    trust: bool
    fixes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class PreparedModel:
    """What is compiled in place of a user's file."""

    file: Path
    """The user's own, if there was nothing to change."""
    inputs: tuple[InputSpec, ...]
    ranges: tuple[IndexRange, ...]
    """What integer inputs may hold."""
    changes: tuple[str, ...] = ()
    """What was changed, for a person."""
    fixed: tuple[FixedInput, ...] = ()
    """Inputs that are part of it."""
    double: tuple[str, ...] = ()
    """Operators that compute in float64."""


@dataclass(frozen=True)
class OnnxFile:
    """A model that the suite names by the path of its file."""

    name: str
    file: Path
    shapes: Shapes = field(default_factory=dict)
    inputs: Path | Inputs = field(default_factory=dict)
    """File of the inputs that it is run on, or how some are drawn."""
    clean: bool = True
    """Whether an exporter's remains are taken out."""
    labelled: LabelledData | None = None
    """Labelled data that it is asked about."""
    trust: bool = False
    """Whether torch may execute what a `.pt2` file holds."""
    fixes: Fixes = field(default_factory=dict)
    """Numbers of inputs that are fixed for good."""
    inner: bool = False
    """Whether it is a piece of another network, whose inputs may be infinite on purpose."""

    def onnx_file(self, cache_dir: Path) -> Path:
        """Return the file itself, or its prepared copy in `cache_dir`. Raises `ModelError`."""
        return self.prepare(cache_dir).file

    def original(self, cache_dir: Path) -> Original:
        """Return the file itself, and what was made of it if it is in another format. Raises `ModelError`."""
        onnx = onnx_of(self.file, cache_dir, trust=self.trust)
        fixed = self._prepared(cache_dir).fixed if self.fixes else ()
        if not (model_format := _format_of(self.file)):
            return Original(onnx, trust=self.trust, fixed=fixed)
        return Original(onnx, self.file, model_format.judge, self.trust, fixed)

    def changes(self, cache_dir: Path) -> tuple[str, ...]:
        """Return what is changed in it before it is compiled. Raises `ModelError`."""
        model = self._prepared(cache_dir)
        if isinstance(self.inputs, Path):
            return model.changes
        drawn = usual_inputs(index for index in model.ranges if index.input not in self.inputs)
        return (*model.changes, *(f"drew {name} from {distribution}" for name, distribution in drawn.items()))

    def input_values(self, cache_dir: Path) -> Path | Inputs:
        """Return the given file, or how inputs are drawn: as given, or from the table that they index.

        Raises `ModelError`.
        """
        if isinstance(self.inputs, Path):
            return self.inputs
        return {**usual_inputs(self._prepared(cache_dir).ranges), **self.inputs}

    def prepare(self, cache_dir: Path) -> PreparedModel:
        """Return what is compiled, with its inputs checked against it. Raises `ModelError`."""
        model = self._prepared(cache_dir)
        if isinstance(self.inputs, Path):
            require_in_range(load_inputs(self.inputs, model.inputs, finite=not self.inner), model.ranges, self.inputs)
        else:
            require_drawable(self.inputs, model.inputs)
            require_drawn_in_range(self.inputs, model.ranges)
        if self.labelled:
            inputs = self.labelled.load_inputs(model.inputs)
            require_in_range({model.inputs[0].name: inputs}, model.ranges, self.labelled.file)
        return model

    def _prepared(self, cache_dir: Path) -> PreparedModel:
        frozen = ((name, shape if isinstance(shape, int) else tuple(shape)) for name, shape in self.shapes.items())
        options = _Options(tuple(sorted(frozen)), self.clean, self.trust, tuple(sorted(self.fixes.items())))
        return _prepare(self.name, self.file, _stamp(self.file), options, cache_dir)


def _stamp(file: Path) -> tuple[int, int]:
    """Return what changes with the file."""
    try:
        stat = file.stat()
    except OSError:
        return 0, 0  # reading it says what is wrong
    return stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=64)
def _prepare(name: str, file: Path, _changed: tuple[int, int], options: _Options, cache: Path) -> PreparedModel:
    """Read a file once, however many cases ask for it."""
    import_module("harness.compile.models.preparation")  # here, and not anew in each fork
    onnx = onnx_of(file, cache, trust=options.trust)
    return run_limited(file, lambda: _prepare_here(name, file, onnx, options, cache))


def onnx_of(file: Path, cache: Path, *, trust: bool) -> Path:
    """Return the file itself, or what a tool makes of its format, kept in `cache`."""
    model_format = _format_of(file)
    return load(model_format.as_onnx)(file, cache, trust=trust) if model_format else file


def _format_of(file: Path) -> ModelFormat | None:
    """Return how a tool reads a file; None for an ONNX file."""
    return next((tool.model_formats[file.suffix] for tool in tools() if file.suffix in tool.model_formats), None)


def _prepare_here(name: str, file: Path, onnx: Path, options: _Options, cache: Path) -> PreparedModel:
    """Prepare the network in `onnx`, which is `file` or was made of it."""
    network = read_and_prepare(file, onnx, dict(options.shapes), clean=options.clean, fixes=dict(options.fixes))
    model, changes, fixed = network.model, network.changes, network.fixed
    specs, ranges = input_specs(model), index_ranges(model)
    double = double_operators(model) if options.clean else ()  # else TVM may fold what is left of them
    if not changes:
        return PreparedModel(file, specs, ranges, double=double)
    try:
        data: bytes = model.SerializeToString()
    except Exception as error:  # protobuf has an exception of its own for each of its implementations
        raise ModelError(f"{file} with its external data is too large for one file: {error}") from error
    copy = write_whole(cache / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.onnx", data)
    return PreparedModel(copy, specs, ranges, tuple(changes), fixed, double)


class PreparedNetwork(NamedTuple):
    """A network as it is compiled."""

    model: Any
    changes: list[str]
    """What was changed in it, for a person."""
    fixed: tuple[FixedInput, ...] = ()
    """Inputs that it has no longer."""


def read_and_prepare(
    source: Path,
    file: Path,
    shapes: Shapes,
    *,
    clean: bool = True,
    may_stay_open: bool = False,
    fixes: Fixes | None = None,
) -> PreparedNetwork:
    """Return the network in `file` as it is compiled.

    Inputs whose shape is not fixed are an error, unless they `may_stay_open`. Raises `ModelError`.
    """
    from harness.compile.models.preparation import prepare
    from harness.compile.models.preparation.opset import widen_bfloats
    from harness.compile.models.preparation.order import sort_operators

    if fixes and source != file:
        raise ModelError(f"inputs of {source} cannot be fixed", hint="--fix is for .onnx files: export it as ONNX")
    model = parse(file)
    external = bring_in_external_data(model, file)
    changes = [f"converted {source.name} from a torch.export program"] if source != file else []
    changes += [f"brought in {counted(external, 'tensor')} from other files"] if external else []
    changes += [order] if clean and (order := sort_operators(model)) else []
    check(file, model)
    changes += [dense] if (dense := write_dense(model, source)) else []
    changes += [widened] if clean and (widened := widen_bfloats(model)) else []
    fixed_inputs = fix_inputs(model, fixes or {}, shapes)
    changes += [f"fixed {each.spec.name} = {each.number:.17g}" for each in fixed_inputs]
    shapes = {name: shape for name, shape in shapes.items() if name not in (fixes or {})}
    if shapes or not may_stay_open:
        fixed = fix_shapes(model, input_specs(model, shapes))
        changes += [f"fixed {', '.join(fixed)}"] if fixed else []
    require_numbers(model, source)
    changes += prepare(model) if clean else []
    require_tensors(model)
    return PreparedNetwork(model, changes, fixed_inputs)


MODELS = "models"
"""Folder of the cache in which models are made."""


def model_source(name: str, others: Sequence[str] = ()) -> NamedModel:
    """Return a network of the zoo. Raises UsageError, with the nearest name, also of `others`, if there is none."""
    models = named_models()
    if name in models:
        return models[name]
    place, suffix = Path(name), Path(name).suffix.lower()
    if place.is_dir():
        raise UsageError(f"{name} is a folder", hint=f"name a file in it that ends in {_ENDINGS}")
    if place.is_file() or suffix in _EXPORTS:
        other = _EXPORT if suffix else f"rename it to {name}.onnx if it is an ONNX file, or {_EXPORT}"
        hint = f"rename it: small letters, {suffix}" if suffix in SUFFIXES else _EXPORTS.get(suffix, other)
        raise UsageError(f"{name} does not end in {_ENDINGS}", hint=hint)
    others = [other for other in others if other not in models]
    suite = f"the suite has {', '.join(others[:MOST_NAMES])}, " if others else ""
    otherwise = f"a file of your own ends in {_ENDINGS}, {suite}and the zoo has"
    hint = suggestion(name, (*others, *models), otherwise=otherwise, choices=models)
    raise UsageError(f"there is no model {name!r}", hint=hint)


_ENDINGS = " or ".join(SUFFIXES)
_EXPORT = "export the network as ONNX"
_TO_PT2 = "write the program with torch.export.save, as .pt2"
_EXPORTS = {
    ".pt": _TO_PT2,
    ".pth": _TO_PT2,
    ".pte": f"an ExecuTorch program is compiled already: {_TO_PT2}",
    ".ckpt": _TO_PT2,
    ".safetensors": f"it holds weights alone: {_EXPORT}",
    ".gguf": f"it holds weights alone: {_EXPORT}",
    ".tflite": "convert it with `python -m tf2onnx.convert --tflite FILE --output FILE.onnx`",
    ".pb": "convert it with `python -m tf2onnx.convert`",
}
"""What to do with files of other frameworks, by suffix."""
