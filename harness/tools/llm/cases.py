"""What is asked of a library, as programs of a suite: each test of each library is a case."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from device_runner.names import suggestion
from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.base.model import ProgramModel
from harness.tools.llm.config import CONTEXT, ZOO, LlmConfig, read_config
from harness.tools.llm.foreign import problem_of
from harness.tools.llm.formats import FORMATS, Format
from harness.tools.llm.lowering import MLC, PIPELINES
from harness.tools.llm.network import CHUNK
from harness.tools.llm.weights import SEED, Weights, require_groups, weights_of

if TYPE_CHECKING:
    from harness.base.plan import Job
    from harness.base.request import QuirkPolicy

Table = TypeVar("Table", bound=BaseModel)
KIND = "llm"
"""Key of a table of language models in a suite."""
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
"""Tests that a model has unless it names some."""
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


UNSUPPORTED_PATHS = {
    "texture": "TVM's paged cache of keys and values, and its schedules for products, have no form for images",
    "clml": "TVM's offload to OpenCL ML for language models needs version 5 of its SDK, and takes nothing without it",
}
"""Why a path cannot run a language model."""


@dataclass(frozen=True)
class LlmTask:
    """A test of a library: of a network with its weights in a number format, by a pipeline."""

    model: str
    """Name of the network."""
    config: LlmConfig
    weights: str
    """`seed`, or a folder."""
    form: Format
    pipeline: str
    test: LlmTest
    length: int
    """Tokens of the longest text that any test of the same library is judged on."""
    chunk: int | None = None
    """Most tokens of a step; None to choose it on the device."""

    @property
    def library(self) -> str:
        """Name of the library, which several tests share."""
        words = (self.model, self.form.name if self.form.layout else "", "" if self.pipeline == MLC else self.pipeline)
        return "_".join(filter(None, words))

    @property
    def tensors(self) -> Weights:
        """The weights."""
        return weights_of(self.config, self.weights)

    def program(self, word: str = "") -> ProgramModel:
        """Return it as a model of a suite."""
        precision = Precision.FLOAT16 if self.form.dtype == "float16" else Precision.FLOAT32
        fields = {**vars(self), "config": self.config.plain, "form": self.form.name, "test": self.test.name}
        name = f"{self.library}_{self.test.part}"
        return ProgramModel(kind=KIND, name=name, precision=precision, fields=fields, word=word)

    @classmethod
    def of(cls, program: ProgramModel) -> LlmTask:
        """Inverse of `program`."""
        fields = program.fields
        config, form, test = LlmConfig.of_plain(fields["config"]), FORMATS[fields["form"]], test_of(fields["test"])
        return cls(**{**fields, "config": config, "form": form, "test": test})

    @classmethod
    def of_table(cls, table: Mapping[str, Any], folder: Path) -> list[LlmTask]:
        """Return the tests that a table of a suite asks for. Raises UsageError."""
        return read_keys(LlmTable, table).tasks(folder)

    @classmethod
    def of_word(cls, word: str) -> list[LlmTask]:
        """Return the tests of a network by its name, its `config.json` or that one's folder; none for another word."""
        return tasks_of([word]) if word in ZOO or config_file(word) is not None else []

    @staticmethod
    def unsupported(path: str) -> str:
        """Return why a path cannot run it; empty if it can."""
        return UNSUPPORTED_PATHS.get(path, "")

    def truth_job(self) -> Job:
        """Return the job that computes the right answers."""
        from harness.tools.llm.truth import truth_job

        title = f"truth of {self.library}"
        return truth_job(title, self.config, self.weights, self.form, self.length)

    def library_job(self, policy: QuirkPolicy, host_triple: str | None) -> Job:
        """Return the job that makes the library."""
        from harness.tools.llm.build import library_job
        from harness.tools.llm.quirks import chosen_quirks

        quirks = chosen_quirks(policy)
        return library_job(self.library, self.config, self.form, self.pipeline, quirks, host_triple)


class LlmTable(BaseModel):
    """A language model as a suite has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    llm: str
    """A network of the zoo, or a `config.json`, or its folder."""
    name: str = ""
    weights: str = SEED
    format: list[str] = ["float32"]
    pipeline: list[str] = [MLC]
    tests: list[str] = [*TESTS]
    chunk: int | None = Field(None, gt=0, le=CHUNK)

    @field_validator("format", "pipeline", mode="before")
    @classmethod
    def _may_be_one(cls, words: Any) -> Any:
        return [words] if isinstance(words, str) else words

    def tasks(self, folder: Path) -> list[LlmTask]:
        """Return the tests of each library; paths are below a folder. Raises UsageError."""
        file = config_file(self.llm, folder)
        if self.llm not in ZOO and file is None:
            hint = f"{suggestion(self.llm, ZOO)} Or give a config.json, or its folder"
            raise UsageError(f"there is no language model {self.llm!r}", hint=hint)
        config = read_config(file) if file else ZOO[self.llm]
        weights = self.weights if self.weights == SEED else str((folder / self.weights).absolute())
        tests = [test_of(name) for name in self.tests]
        name, length = self.name or _name(self.llm, file), max(test.length for test in tests)
        choices = product(choose("format", self.format, FORMATS), choose("pipeline", self.pipeline, PIPELINES), tests)
        tasks = [
            LlmTask(name, config, weights, FORMATS[form], pipeline, test, length, self.chunk)
            for form, pipeline, test in choices
        ]
        for task in tasks[:: len(tests)]:
            require_groups(config, task.form)
        weights_of(config, weights).require_complete()
        return tasks


def read_keys(kind: type[Table], table: Mapping[str, Any]) -> Table:
    """Return a table of a suite. Raises UsageError with the key at fault."""
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise UsageError(problem_of(error), hint=suggestion(key, kind.model_fields)) from None


def tasks_of(models: Sequence[str], **choices: Any) -> list[LlmTask]:
    """Return the tests of the models of a command line; `choices` are keys of a table. Raises UsageError."""
    keys = {key: value for key, value in choices.items() if value}
    return [task for model in models for task in LlmTask.of_table({"llm": model, **keys}, Path())]


def config_file(model: str, folder: Path = Path()) -> Path | None:
    """Return the configuration that a word means: a `config.json`, or that of a folder; None if it means none."""
    path = folder / model
    if path.is_dir():
        path /= "config.json"
    return path if path.suffix == ".json" and path.is_file() else None


def _name(model: str, file: Path | None) -> str:
    """Return the name of a network: its own in the zoo, or that of its folder."""
    if file is None:
        return model
    place = file.parent.resolve() if file.name == "config.json" else file
    return re.sub(r"[^a-z0-9]+", "_", place.name.removesuffix(".json").lower()).strip("_") or KIND


def choose(kind: str, names: Sequence[str], choices: Collection[str]) -> Sequence[str]:
    """Return the names. Raises UsageError for one that is no choice."""
    for name in names:
        if name not in choices:
            raise UsageError(f"there is no {kind} {name!r}", hint=suggestion(name, choices))
    return names
