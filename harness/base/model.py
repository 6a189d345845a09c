"""A model as the suite names it: a network of the zoo by its name, or a file of a person's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from device_runner.names import suggestion
from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.base.tables import grouped

PROGRAM_SUFFIX = ".pt2"
"""Ending of a `torch.export` program."""
SUFFIXES = (".onnx", PROGRAM_SUFFIX)
"""Endings of a user's model file; any other name is a network of the zoo."""


ARGUMENTS = {
    "normal": ("mean", "deviation"),
    "uniform": ("low", "high"),
    "integers": ("lowest", "highest"),
    "constant": ("value",),
}
"""Every kind of distribution and its arguments. The highest integer may be drawn."""
_FORM = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class Distribution:
    """What an input's elements are drawn from, independently of each other."""

    kind: str
    arguments: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Distribution:
        """Read `normal(0, 1)`, `uniform(0, 1)`, `integers(0, 9)` or `constant(1)`. Raises UsageError."""
        match = _FORM.fullmatch(text)
        kind = match.group(1) if match else text
        if not match or kind not in ARGUMENTS:
            forms = [f"{name}({', '.join(arguments)})" for name, arguments in ARGUMENTS.items()]
            raise UsageError(f"{text!r} is not a distribution", hint=suggestion(kind, forms, otherwise="known are"))
        try:
            distribution = cls(kind, tuple(float(part) for part in match.group(2).split(",")))
        except ValueError:
            raise UsageError(f"arguments of {text!r} must be numbers", hint=f"for example {kind}(0, 1)") from None
        distribution._require_sense(text)
        return distribution

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{argument:.17g}' for argument in self.arguments)})"

    def _require_sense(self, text: str) -> None:
        names = ARGUMENTS[self.kind]
        first, last = self.arguments[0], self.arguments[-1]
        if len(self.arguments) != len(names):
            raise UsageError(f"{text!r} has {len(self.arguments)} numbers", hint=f"it takes {', '.join(names)}")
        if not all(abs(argument) < 2**53 for argument in self.arguments):
            raise UsageError(f"{text!r} has a number that is too large", hint="below 2**53 each is exact")
        if self.kind in ("uniform", "integers") and first > last:
            raise UsageError(f"{text!r}: {first:g} is more than {last:g}", hint="give the lower one first")
        if self.kind == "integers" and not (first.is_integer() and last.is_integer()):
            raise UsageError(f"{text!r} has numbers that are not whole", hint="for example integers(0, 9)")
        if self.kind == "normal" and last < 0:
            raise UsageError(f"{text!r}: a deviation cannot be negative", hint="for example normal(0, 1)")


class ImageFolder(BaseModel):
    """Labelled pictures: a folder for each class, and how a picture becomes an input."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    resize: int = Field(gt=0)
    """Length of a picture's shorter side, in pixels, before its middle is cut out."""
    crop: int = Field(gt=0)
    """Side of the square that is cut out, in pixels: the input's height and width."""
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    """Subtracted from each channel, whose values are 0 to 1: three for colour, one for grey."""
    deviation: tuple[float, ...] = (1.0, 1.0, 1.0)
    """What each channel is divided by then."""
    most: int = Field(1000, gt=0)
    """Most pictures, spread evenly over the classes."""

    @model_validator(mode="after")
    def _makes_sense(self) -> ImageFolder:
        if self.crop > self.resize:
            raise ValueError(f"crop {self.crop} is larger than resize {self.resize}")
        if len(self.mean) not in (1, 3) or len(self.mean) != len(self.deviation) or min(self.deviation) <= 0:
            raise ValueError("mean and deviation have one positive number for grey, or three for colour")
        return self


class OnnxModel(BaseModel):
    """A user's own network."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    onnx: Path
    name: str = ""
    shapes: dict[str, list[int] | int] = {}
    """Fixes dynamic dimensions: whole shapes, `{ input = [1, 3, 224, 224] }`, or named extents, `{ batch = 1 }`."""
    inputs: Path | dict[str, str] = {}
    """An `.npz` file with an array per input, or how to draw some inputs: `{ tokens = "integers(0, 9)" }`."""
    fix: dict[str, float] = {}
    """Replaces inputs by numbers, `{ sr = 16000 }`, before the network is compiled."""
    labelled: Path | ImageFolder | None = None
    """Labelled inputs, an `.npz` file or a folder of pictures: the share of right answers is recorded and judged."""
    score: str = ""
    """A function of the outputs and labels, `module:function`, which returns a name and a number, such as mAP. Its code
    runs: name only your own."""
    trust: bool = False
    """Whether torch may execute code in a `.pt2` file."""
    clean: bool = True
    """Whether the network is prepared for TVM (`harness.compile.models.preparation`)."""

    @model_validator(mode="after")
    def _has_what_is_scored(self) -> OnnxModel:
        if self.score and not re.fullmatch(r".+:[A-Za-z_]\w*", self.score):
            raise ValueError(f'{self.score!r} names no function: write score = "module:function"')
        if self.score and not self.labelled:
            raise ValueError("score needs labelled data: give labelled, too")
        return self

    @field_validator("inputs")
    @classmethod
    def _can_be_drawn(cls, inputs: Path | dict[str, str]) -> Path | dict[str, str]:
        try:
            for text in inputs.values() if isinstance(inputs, dict) else ():
                Distribution.parse(text)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return inputs

    @property
    def drawn(self) -> dict[str, Distribution]:
        """How some inputs are drawn."""
        texts = self.inputs if isinstance(self.inputs, dict) else {}
        return {name: Distribution.parse(text) for name, text in texts.items()}


class ProgramModel(BaseModel):
    """A program that only a tool reads, builds and runs: it may have several functions, and state between calls."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    """Which one of `Tool.programs`."""
    name: str = Field(pattern=r"^[a-z0-9_]+$")
    """As case ids have it."""
    precision: Precision
    """The only one that it is in."""
    fields: dict[str, Any]
    """What the tool knows of it, as JSON values. Paths are absolute."""
    word: str = ""
    """The word of a command line that named it, perhaps with others; empty if a suite did."""


Model = str | OnnxModel | ProgramModel
"""A network of the zoo by its name, a file, or a program."""


class InnerModel(OnnxModel):
    """A piece of a network on what the network makes of its inputs: some of that may be infinite on purpose."""


def model_name(model: Model) -> str:
    """Return the name that stands in case ids: of a zoo model itself, of a file its stem in `[a-z0-9_]`."""
    if isinstance(model, ProgramModel):
        return model.name
    if isinstance(model, str) and not model.endswith(SUFFIXES):
        return model
    text = model if isinstance(model, str) else (model.name or str(model.onnx))
    return safe_name(Path(text).stem)


def safe_name(name: str) -> str:
    """Return a name as it may stand in a case id."""
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_") or "model"


def _below(folder: Path, data: Path | ImageFolder | None) -> Path | ImageFolder | None:
    if isinstance(data, ImageFolder):
        return data.model_copy(update={"folder": folder / data.folder})
    return folder / data if data else None


def _score_below(folder: Path, score: str) -> str:
    """Return the place of a function, by its file if that is in this folder."""
    module, _, function = score.rpartition(":")
    file = folder / (module if module.endswith(".py") else f"{module.replace('.', '/')}.py")
    return f"{file}:{function}" if module and file.is_file() else score


def anchored(model: Model, folder: Path) -> Model:
    """Return the model with its paths below a folder. Those of a program are absolute already."""
    if isinstance(model, ProgramModel):
        return model
    if isinstance(model, OnnxModel):
        inputs = folder / model.inputs if isinstance(model.inputs, Path) else model.inputs
        labelled = _below(folder, model.labelled)
        places = {"onnx": folder / model.onnx, "inputs": inputs, "labelled": labelled}
        return model.model_copy(update={**places, "score": _score_below(folder, model.score)})
    return OnnxModel(onnx=folder / model) if model.endswith(SUFFIXES) else model


def models_given(
    models: Sequence[str],
    shapes: Sequence[str],
    inputs: Sequence[str],
    fixes: Sequence[str] = (),
    *,
    trust: bool = False,
) -> list[str | OnnxModel]:
    """Return the models of a command line: `--model`, with what else is said of each that is a file.

    Raises UsageError for what cannot be read.
    """
    files = [model for model in models if model.endswith(SUFFIXES)]
    if (shapes or inputs or fixes) and not files:
        wrong = "--shape" if shapes else "--input" if inputs else "--fix"
        raise UsageError(f"{wrong} is for a file of your own", hint="name it with --model FILE.onnx")
    if trust and not any(model.endswith(PROGRAM_SUFFIX) for model in files):
        raise UsageError("--trust has no effect: it is for a .pt2 file", hint="leave --trust out")
    keys: dict[str, Any] = {"shapes": shapes_given(shapes), "inputs": _inputs(inputs), "fix": fixes_given(fixes)}
    keys["trust"] = trust
    names = _names_of_files(files)
    return [
        OnnxModel(onnx=Path(model), name=names.get(model, ""), **keys) if model in files else model for model in models
    ]


def _names_of_files(files: Sequence[str]) -> dict[str, str]:
    """Name the files that would be called alike: by their suffix, or by as many folders above them as tell them apart.

    The same file twice has no name here.
    """
    return {
        file: distinct
        for name, alike in grouped(files, model_name).items()
        if len(alike) > 1
        for file, distinct in zip(alike, _distinct(name, [Path(file).resolve() for file in alike]), strict=False)
    }


def _distinct(stem: str, files: Sequence[Path]) -> list[str]:
    """Return a different name for each file of this stem; none if one is given twice."""
    folders = [[*reversed(file.parent.parts)] for file in files]
    depths = range(1, max(map(len, folders)))
    forms = [
        [f"{stem}_{file.suffix.removeprefix('.')}" for file in files],
        *(["_".join([*reversed(above[:depth]), stem]) for above in folders] for depth in depths),
    ]
    return next((names for names in forms if len({*map(safe_name, names)}) == len(files)), [])


def words_given(models: Sequence[Model]) -> list[str]:
    """Return the words of a command line that `models_given` would read as these models."""
    words = [word for name in dict.fromkeys(map(_word, models)) for word in ("--model", name)]
    files = [model for model in models if isinstance(model, OnnxModel)]
    for model in files[:1]:  # these options are for all of them
        sizes = {name: [shape] if isinstance(shape, int) else shape for name, shape in model.shapes.items()}
        words += [word for n, shape in sizes.items() for word in ("--shape", f"{n}=" + "x".join(map(str, shape)))]
        drawn = model.inputs.items() if isinstance(model.inputs, dict) else [("", str(model.inputs))]
        words += [word for name, text in drawn for word in ("--input", f"{name}={text}" if name else text)]
        words += [word for name, number in model.fix.items() for word in ("--fix", f"{name}={number:.17g}")]
        words += ["--trust"] if model.trust else []
    return words


def _word(model: Model) -> str:
    if isinstance(model, ProgramModel):
        return model.word
    return model if isinstance(model, str) else str(model.onnx)


def shapes_given(texts: Sequence[str]) -> dict[str, list[int] | int]:
    """Parse `--shape`: `input=1x3x224x224` is a whole shape, `batch=1` one extent. Raises UsageError."""
    shapes: dict[str, list[int] | int] = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        if not name or not re.fullmatch(r"\d{1,12}(x\d{1,12})*", sizes):
            raise UsageError(f"--shape {text!r} is not a shape", hint="write input=1x3x224x224, or batch=1")
        extents = [int(size) for size in sizes.split("x")]
        shapes[name] = extents if len(extents) > 1 else extents[0]
    return shapes


def fixes_given(texts: Sequence[str]) -> dict[str, float]:
    """Parse `--fix`: `sr=16000`. Raises UsageError."""
    numbers: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            numbers[name] = float({"true": "1", "false": "0"}.get(number.lower(), number))
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"--fix {text!r} gives no input a number", hint="write sr=16000, or flag=true")
    return numbers


def _inputs(texts: Sequence[str]) -> Path | dict[str, str]:
    """Return a file, or `tokens=integers(0,9)`, as often as there are inputs."""
    files = [text for text in texts if "(" not in text]
    if len(files) == 1 == len(texts):
        if (file := Path(files[0])).is_file():
            return file
        problem = "it is a folder" if file.is_dir() else "there is no such file"
        hint = "give the path of an .npz file, or how to draw an input: 'tokens=integers(0, 9)'"
        raise UsageError(f"--input {file}: {problem}", hint=hint)
    if files:
        raise UsageError(f"--input {files[0]!r} does not go with another", hint="one .npz file holds all inputs")
    drawn = {name: text for name, _, text in (text.rpartition("=") for text in texts)}
    for text in drawn.values():
        Distribution.parse(text)
    return drawn
