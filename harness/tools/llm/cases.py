"""What is asked of a library, as programs of a suite: each test of each library is a case."""

from __future__ import annotations

import platform
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from typing_extensions import Self

from device_runner.names import suggestion
from device_runner.store import key_of, sha256_of
from harness.base.case import Case, Precision
from harness.base.failures import UsageError, reason_alone
from harness.base.model import ProgramModel, safe_name
from harness.base.plan import Job
from harness.base.request import QuirkPolicy
from harness.tools.llm import TOOL
from harness.tools.llm.config import CONTEXT, ZOO, LlmConfig, read_config, read_plain
from harness.tools.llm.folders import MlcFolder, MlcWeights, weights_of
from harness.tools.llm.lowering import MLC, PIPELINES
from harness.tools.llm.network import CHUNK, DECODE, PAGE, PREFILL, PREFILL_AGAIN, Step
from harness.tools.llm.part import LlmPart
from harness.tools.llm.weights import FORMATS, SEED, Format, require_sizes, weight_sizes

DECODES = PAGE + 1
"""Steps of decode that are judged: from any depth on, they cross into another page of the cache."""


@dataclass(frozen=True)
class LlmTest:
    """A prompt of `tokens`, or single tokens, on a cache of `depth` tokens."""

    name: str
    tokens: int
    depth: int = 0
    in_chunks: bool = False
    """Whether what lies in the cache before is judged, too: a text in several steps."""

    @property
    def decodes(self) -> bool:
        """Whether it is about single tokens."""
        return self.name.startswith("tg")

    @property
    def length(self) -> int:
        """Tokens of the text that is judged."""
        return self.depth + (DECODES if self.decodes else self.tokens)

    @property
    def prompt(self) -> int:
        """Tokens at the end of the text that are judged as a prompt."""
        return self.length if self.in_chunks else self.tokens

    @property
    def part(self) -> str:
        """The name as a part of a case id."""
        return self.name.replace("@", "_")

    @property
    def last_step(self) -> Step:
        """The step that takes its last tokens."""
        return DECODE if self.decodes else PREFILL

    @property
    def timed_step(self) -> Step:
        """The same as it is timed."""
        return DECODE if self.decodes else PREFILL_AGAIN


TESTS = ("pp32", "pp128", "pp512", "tg@d0", "tg@d512", "chunks")
"""Tests that a model has unless it names some."""
UNSUPPORTED_PATHS = {
    "texture": "TVM's paged cache of keys and values, and its schedules for products, have no form for images",
    "clml": "TVM's offload to OpenCL ML for language models needs version 5 of its SDK, and takes nothing without it",
}
USUAL_FORMAT = "float32"
"""Number format of weights unless another is asked for."""
QUICK_TESTS = ("pp32", "tg@d0", "chunks")
_NAMED = re.compile(r"(?P<kind>pp|tg)(?P<tokens>\d{1,4})?(?:@d(?P<depth>\d{1,4}))?")


def test_of(name: str) -> LlmTest:
    """Return a test by its name: `pp128`, `pp128@d512`, `tg@d512`, `chunks`. Raises UsageError."""
    if name == "chunks":
        return LlmTest(name, 32, 96, in_chunks=True)
    match = _NAMED.fullmatch(name)
    if match and (match["kind"] == "pp") == (match["tokens"] is not None):
        tokens, depth = int(match["tokens"] or 1), int(match["depth"] or 0)
        if 0 < tokens <= CHUNK and depth + tokens <= CONTEXT - CHUNK:
            return LlmTest(name if match["kind"] == "pp" else f"tg@d{depth}", tokens, depth)
    hint = f"a prompt has at most {CHUNK} tokens, a depth at most {CONTEXT - CHUNK - 1}; {suggestion(name, TESTS)}"
    raise UsageError(f"there is no test {name!r}", hint=hint)


class LibraryTable(BaseModel):
    """Tests of libraries as a suite has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field("", pattern=r"^[a-z0-9_]*$")
    tests: list[str] = Field([*TESTS], min_length=1)
    chunk: int | None = Field(None, gt=0, le=CHUNK)


@dataclass(frozen=True)
class LibraryTask:
    """A test of a library, and its kind of programs (`harness.base.program.ProgramKind`)."""

    kind: ClassVar[str]
    """Key of its table in a suite."""
    table: ClassVar[type[LlmTable] | type[MlcTable]]
    run: ClassVar = "harness.tools.llm.run:run_program"

    model: str
    weights: str
    """A folder; of our network also `seed`."""
    config: LlmConfig | None
    """The network; None of a library whose network nobody knows."""
    form: Format
    pipeline: str
    parameters: int
    """Number of weights."""
    test: LlmTest
    chunk: int | None
    """Most tokens of a step; None to choose it on the device."""
    length: int
    """Tokens of the longest text that any test of the same library is judged on."""

    @property
    def title(self) -> str:
        """Name of the library, which several tests share."""
        return self.model

    @property
    @abstractmethod
    def network(self) -> str:
        """Hash of the network and its weights."""

    @property
    def part(self) -> LlmPart:
        """What its record says before it is run."""
        names = {"model": self.model, "format": self.form.name, "pipeline": self.pipeline, "test": self.test.name}
        return LlmPart(**names, parameters=self.parameters, tokens=self.test.tokens, depth=self.test.depth)

    @classmethod
    def truth(cls, program: ProgramModel) -> Job:
        """Return the job that computes the right answers to a text, the same for every TVM and test of a library."""
        task = cls.of(program)
        config = task.config and asdict(task.config)
        facts = {"config": config, "form": asdict(task.form), "length": task.length, "network": task.network}
        more = {"weights": task.weights, "mlc": cls.kind == MlcTask.kind}
        return job_of("llm-truth", f"truth of {task.title}", facts, **more)

    @classmethod
    def read_table(cls, table: Mapping[str, Any], folder: Path, word: str = "") -> Sequence[ProgramModel]:
        """Return the programs of a table of a suite. Raises UsageError with the key at fault."""
        try:
            read = cls.table.model_validate(table)
        except ValidationError as error:
            key, keys = str(error.errors()[0]["loc"][0]), cls.table.model_fields
            raise UsageError(reason_alone(error), hint="" if key in keys else suggestion(key, keys)) from None
        tests = [test_of(name) for name in read.tests]
        facts = {"chunk": read.chunk, "length": max(test.length for test in tests)}
        return [make(test=test, **facts).program(word) for make in read.libraries(folder) for test in tests]

    @classmethod
    def read_word(cls, _word: str) -> Sequence[ProgramModel]:
        """Return the programs of a word after `--model`: none."""
        return []

    @classmethod
    def of(cls, program: ProgramModel) -> Self:
        """Inverse of `program`."""
        return read_plain(cls, program.fields)

    def program(self, word: str = "") -> ProgramModel:
        """Return it as a model of a suite."""
        names = {"kind": self.kind, "name": f"{self.title}_{self.test.part}", "word": word}
        return ProgramModel(**names, precision=Precision(self.form.dtype), fields=asdict(self))


class LlmTable(LibraryTable):
    """A language model as a suite has it."""

    llm: str
    """A network of the zoo, or a `config.json`, or its folder."""
    weights: str = SEED
    format: list[str] = Field([USUAL_FORMAT], min_length=1)
    pipeline: list[str] = Field([MLC], min_length=1)

    @field_validator("format", "pipeline", mode="before")
    @classmethod
    def _may_be_one(cls, words: Any) -> Any:
        return [words] if isinstance(words, str) else words

    def libraries(self, folder: Path) -> Iterator[Callable[..., LibraryTask]]:
        """Yield what makes a task of the network in each format by each pipeline. Raises UsageError."""
        if (network := network_of(self.llm, folder)) is None:
            hint = f"give a config.json, or its folder; {suggestion(self.llm, ZOO)}"
            raise UsageError(f"there is no language model {self.llm!r}", hint=hint)
        own_name, config = network
        weights = self.weights if self.weights == SEED else str((folder / self.weights).absolute())
        for key, words, choices in (("format", self.format, FORMATS), ("pipeline", self.pipeline, PIPELINES)):
            if unknown := next((word for word in words if word not in choices), None):
                raise UsageError(f"there is no {key} {unknown!r}", hint=suggestion(unknown, choices))
        weights_of(config, weights).require_complete()
        for form, pipeline in product(map(FORMATS.__getitem__, self.format), self.pipeline):
            require_sizes(config, form)
            yield partial(LlmTask, self.name or own_name, weights, config, form, pipeline, config.parameters)


@dataclass(frozen=True)
class LlmTask(LibraryTask):
    """A test of our network with its weights in a number format, by a pipeline."""

    kind = "llm"
    table = LlmTable

    config: LlmConfig

    @property
    def title(self) -> str:
        """Name of the library, which several tests share."""
        words = (word for word in (self.form.name, self.pipeline) if word not in (USUAL_FORMAT, MLC))
        return "_".join([self.model, *words])

    @property
    def network(self) -> str:
        """Hash of the network and its weights."""
        return key_of({"weights": weights_of(self.config, self.weights).key, "config": asdict(self.config)})

    @classmethod
    def read_word(cls, word: str) -> Sequence[ProgramModel]:
        """Return the programs of a network by its name, its `config.json` or that one's folder."""
        return cls.read_table({"llm": word}, Path(), word) if network_of(word) else []

    @classmethod
    def unsupported(cls, program: ProgramModel, path: str) -> str:
        """Return why a path cannot run a test; empty if it can."""
        task = cls.of(program)
        length, most = task.test.length, task.config.positions
        beyond = f"a text of {length} tokens does not fit: the network has {most} positions (max_position_embeddings)"
        return UNSUPPORTED_PATHS.get(path, beyond if length > most else "")

    @classmethod
    def build(cls, program: ProgramModel, _case: Case | None, policy: QuirkPolicy, host_triple: str | None) -> Job:
        """Return the job that makes the library."""
        from harness.compile.artifacts.keys import linker_version
        from harness.compile.compiler.releases import versions
        from harness.tools.llm.quirks import chosen_quirks

        task = cls.of(program)
        network = {"config": asdict(task.config), "format": task.form.name, "pipeline_name": task.pipeline}
        linked = {"host_triple": host_triple, "linker": linker_version(host_triple)}
        facts = {**network, **linked, "quirks": chosen_quirks(policy, task.pipeline), **versions()}
        return job_of("llm-library", task.title, facts)


class MlcTable(LibraryTable):
    """A library that mlc-llm compiled, as a suite has it."""

    mlc: str
    weights: str

    def libraries(self, folder: Path) -> Iterator[Callable[..., LibraryTask]]:
        """Yield what makes a task of it. Raises UsageError."""
        library, weights = ((folder / word).absolute() for word in (self.mlc, self.weights))
        if not library.is_file():
            raise UsageError(f"there is no library {library}", hint="`mlc_llm compile` writes one")
        stored = MlcFolder(weights)
        name, settings, network = self.name or safe_name(library.stem), stored.settings, stored.settings.network
        if network:
            MlcWeights(network, stored).require_complete()
        facts = network, Format(settings.quantization, settings.dtype), "mlc-llm", stored.parameters
        yield partial(MlcTask, name, str(weights), *facts, library=str(library))


@dataclass(frozen=True)
class MlcTask(LibraryTask):
    """A test of such a library."""

    kind = "mlc"
    table = MlcTable

    library: str

    @cached_property
    def folder(self) -> MlcFolder:
        """Its weights."""
        return MlcFolder(Path(self.weights))

    @property
    def network(self) -> str:
        """Hash of the weights."""
        return key_of({"mlc": self.folder.key})

    @staticmethod
    def unsupported(_program: ProgramModel, path: str) -> str:
        """Return why a path cannot run it; empty if it can."""
        return "" if path == "opencl" else "mlc-llm compiled it, for plain OpenCL"

    @classmethod
    def build(cls, program: ProgramModel, _case: Case, _policy: QuirkPolicy, host_triple: str | None) -> Job:
        """Return the job that takes the library into the store."""
        from device_runner.runtimes.cross_linker import MACHINE

        task = cls.of(program)
        machine = MACHINE if host_triple else f"EM_{platform.machine().upper()}"
        weights = task.folder.weights.items()
        largest = max(weight_sizes((name, weight.shape, weight.dtype) for name, weight in weights), default=0)
        facts = {"machine": machine, "buffer_bytes": largest, "quirks": [], "sha256": sha256_of(Path(task.library))}
        return job_of("mlc-library", task.model, facts, library=task.library)


def job_of(kind: str, title: str, facts: dict[str, Any], **more: Any) -> Job:
    """Return a job. Its key is that of the facts, not of `more`, and of all that the module imports that does it."""
    from harness.compile.artifacts.keys import module_version

    module = TOOL.jobs[kind].place.partition(":")[0]
    return Job(kind, key_of({**facts, "sources": module_version(module)}), title, {**facts, **more})


def tasks_of(models: Sequence[str], **choices: Any) -> list[LlmTask]:
    """Return the tests of the models of a command line; `choices` are keys of a table. Raises UsageError."""
    keys = {key: value for key, value in choices.items() if value}
    tables = ({"llm": model, **keys} for model in models)
    return [LlmTask.of(program) for table in tables for program in LlmTask.read_table(table, Path())]


def network_of(word: str, folder: Path = Path()) -> tuple[str, LlmConfig] | None:
    """Return the network that a word means, with its name: a `config.json`, that of a folder, or one of the zoo.

    None if it means none. Raises ModelError.
    """
    path = folder / word
    file = path / "config.json" if path.is_dir() else path
    if file.suffix == ".json" and file.is_file():
        return safe_name(file.parent.resolve().name if file.name == "config.json" else file.stem), read_config(file)
    return (word, ZOO[word]) if word in ZOO else None
