"""What is asked of one library: its tests, and the cases of core's records that they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from device_runner.names import suggestion
from harness.base.case import Case, Precision
from harness.base.failures import UsageError
from harness.tools.llm.config import CONTEXT, ZOO, LlmConfig, read_config
from harness.tools.llm.formats import FORMATS, Format
from harness.tools.llm.lowering import MLC, PIPELINES
from harness.tools.llm.network import CHUNK
from harness.tools.llm.weights import FolderWeights, SeededWeights, Weights, require_groups

DECODES = 8
"""Steps of decode that are judged."""
CHUNKS = 4


@dataclass(frozen=True)
class LlmTest:
    """A prompt of `tokens`, or single tokens, on a cache of `depth` tokens."""

    name: str
    tokens: int
    depth: int = 0
    chunks: int = 1
    """How many steps a prompt is cut into, to be judged; the last one is timed."""

    @property
    def decodes(self) -> bool:
        """Whether it is about single tokens."""
        return self.name.startswith("tg")

    @property
    def length(self) -> int:
        """Tokens of the text that is judged."""
        return self.depth + (DECODES if self.decodes else self.tokens)

    @property
    def part(self) -> str:
        """The name as a part of a case id."""
        return self.name.replace("@", "_")


TESTS = ("pp32", "pp128", "pp512", "tg@d0", "tg@d512", "chunks")
"""Tests that a run has unless it is told."""
QUICK_TESTS = ("pp32", "tg@d0", "chunks")
_NAMED = re.compile(r"(?P<kind>pp|tg)(?P<tokens>\d{1,4})?(?:@d(?P<depth>\d{1,4}))?")


def test_of(name: str) -> LlmTest:
    """Return a test by its name: `pp128`, `pp128@d512`, `tg@d512`, `chunks`. Raises UsageError."""
    if name == "chunks":
        return LlmTest(name, 32, 96, CHUNKS)
    match = _NAMED.fullmatch(name)
    if match and (match["kind"] == "pp") == (match["tokens"] is not None):
        tokens, depth = int(match["tokens"] or 1), int(match["depth"] or 0)
        if 0 < tokens <= CHUNK and depth + tokens <= CONTEXT - CHUNK:
            return LlmTest(name if match["kind"] == "pp" else f"tg@d{depth}", tokens, depth)
    hint = f"{suggestion(name, TESTS)} A prompt has at most {CHUNK} tokens, a depth at most {CONTEXT - CHUNK - 1}"
    raise UsageError(f"there is no test {name!r}", hint=hint)


@dataclass(frozen=True)
class LlmModel:
    """A network with its weights."""

    name: str
    config: LlmConfig
    weights: Weights

    @classmethod
    def read(cls, model: str, weights: str = "seed") -> LlmModel:
        """Return a network of the zoo, or of a config.json or its folder; weights from a seed or a folder.

        Raises UsageError, ModelError.
        """
        file = _config_file(model)
        if model not in ZOO and file is None:
            hint = f"{suggestion(model, ZOO)} Or give a config.json, or its folder"
            raise UsageError(f"there is no language model {model!r}", hint=hint)
        config = read_config(file) if file else ZOO[model]
        folder = file.parent.resolve() if file and file.name == "config.json" else file
        name = (
            re.sub(r"[^a-z0-9]+", "_", folder.name.removesuffix(".json").lower()).strip("_") or "llm"
            if folder
            else model
        )
        if weights == "seed":
            return cls(name, config, SeededWeights(config))
        stored = FolderWeights(config, Path(weights))
        stored.require_complete()
        return cls(name, config, stored)


def is_llm(model: str) -> bool:
    """Return whether a word after `--model` means a language model: a name, a config.json, or its folder."""
    return model in ZOO or _config_file(model) is not None


def _config_file(model: str) -> Path | None:
    path = Path(model)
    if path.is_dir():
        path /= "config.json"
    return path if path.suffix == ".json" and path.is_file() else None


@dataclass(frozen=True)
class Variant:
    """A library to build: a network in a number format, by a pipeline, for a path."""

    model: LlmModel
    form: Format
    pipeline: str = MLC
    path: str = "opencl"

    @property
    def title(self) -> str:
        """The name as builds show it."""
        return f"{self._name}-{self.path}"

    @property
    def _name(self) -> str:
        words = (
            self.model.name,
            self.form.name if self.form.layout else "",
            "" if self.pipeline == MLC else self.pipeline,
        )
        return "_".join(filter(None, words))

    def case(self, test: LlmTest) -> Case:
        """Return the case of a test: each has a series of its own."""
        precision = Precision.FLOAT16 if self.form.dtype == "float16" else Precision.FLOAT32
        return Case(f"{self._name}_{test.part}", self.path, precision)


PATHS = ("opencl", "texture", "clml")


def variants_of(
    models: Sequence[str],
    weights: str = "seed",
    formats: Sequence[str] = (),
    pipelines: Sequence[str] = (),
    paths: Sequence[str] = (),
) -> list[Variant]:
    """Return what is to be built; without formats, pipelines or paths the first of each. Raises UsageError."""
    forms = [FORMATS[name] for name in _choose("format", formats or ("float32",), FORMATS)]
    passes = _choose("pipeline", pipelines or PIPELINES[:1], PIPELINES)
    variants = []
    for name in models:
        model = LlmModel.read(name, weights)
        for form, pipeline, path in product(forms, passes, _choose("path", paths or PATHS[:1], PATHS)):
            require_groups(model.config, form)
            variants.append(Variant(model, form, pipeline, path))
    return variants


def _choose(kind: str, names: Sequence[str], choices: Collection[str]) -> Sequence[str]:
    for name in names:
        if name not in choices:
            raise UsageError(f"there is no {kind} {name!r}", hint=suggestion(name, choices))
    return names
