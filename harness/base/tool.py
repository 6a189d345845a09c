"""The seam: what a tool adds to the main job, and the one list of tools.

The main job imports no tool. It asks this list what tools add, and loads a place, `MODULE:NAME`, when it needs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from device_runner.names import load
from harness.base.failures import UsageError

URL, MANY_FILES = "://", "*"
"""Keys of what reads the records behind a URL, and those of several files."""
VARIABLE = "ADRENO_BENCH_TOOLS"
"""Environment: modules of further tools, between commas, each with a `TOOL`. Their code runs: name your own only."""

TOOLS = (
    "harness.tools.init",
    "harness.tools.zoo",
    "harness.tools.torch",
    "harness.tools.calibrate",
    "harness.tools.ab",
    "harness.tools.github",
    "harness.tools.asv",
    "harness.tools.correctness",
    "harness.tools.repeat",
    "harness.tools.labelled",
    "harness.tools.live",
    "harness.tools.tune",
    "harness.tools.ops",
    "harness.tools.llm",
    "harness.tools.bundle",
    "harness.tools.lake",
    "harness.tools.sustain",
    "harness.tools.profile",
    "harness.tools.explain",
    "harness.tools.isa",
    "harness.tools.upstream",
    "harness.tools.doctor",
    "harness.tools.fleet",
    "harness.tools.runtime",
    "harness.tools.builders",
    "harness.tools.cache",
)
"""Packages of tools, in the order of their commands in `--help`. Each has a `TOOL`."""


@dataclass(frozen=True)
class Command:
    """A command of the program, as far as the list of commands needs to know it."""

    name: str
    """What a person types."""
    help: str
    """The first sentence of its help."""
    group: str
    """Heading in `--help`: one of `harness.cli.GROUPS`."""
    place: str = ""
    """`MODULE:NAME` of a function or a group; empty if `harness.cli` has it under the same name."""
    formerly: str = ""
    """Command and option that it was before, `COMMAND --OPTION`, which still call it."""


@dataclass(frozen=True)
class CacheKind:
    """One folder of the cache, each entry of which is a folder or file under its key."""

    name: str
    holds: str
    """What an entry is, where it does not say so itself."""


@dataclass(frozen=True)
class ModelFormat:
    """A format of model files besides ONNX."""

    as_onnx: str
    """`MODULE:NAME` of a function of a file, a folder and `trust`, which returns an ONNX file of it in the folder."""
    judge: str
    """`MODULE:NAME` of what opens a file, with `trust`, as a `harness.compile.oracle.judge.Judge`."""


@dataclass(frozen=True)
class JobKind:
    """A kind of job that worker processes of a build do."""

    place: str
    """`MODULE:NAME` of a function of the job's fields, as its file in JSON has them, and of the folder to fill."""
    library: bool = False
    """Whether it makes a library, and so belongs to the artifacts; else it leaves answers."""
    author: str = "the compiler"
    """Who does it, as messages name it."""


@dataclass(frozen=True)
class Tool:
    """What a tool adds to the main job. Each place, `MODULE:NAME`, is loaded when it is asked for."""

    name: str
    commands: tuple[Command, ...] = ()
    models: str = ""
    """Place of a tuple of networks that a suite may name (`harness.compile.models.named.NamedModel`)."""
    model_formats: Mapping[str, ModelFormat] = field(default_factory=dict)
    """Formats of model files, by suffix (`harness.base.model.SUFFIXES`)."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Places of `harness.base.program.ProgramKind`, by the key of a table that is one in a suite's `models`."""
    probes: tuple[str, ...] = ()
    """Places of functions that make a probe of each case (`harness.measure.standard_probes.ProbeMaker`)."""
    record_parts: Mapping[str, str] = field(default_factory=dict)
    """Places of frozen dataclasses or pydantic models, by the name under which a record keeps one."""
    part_views: Mapping[str, str] = field(default_factory=dict)
    """Places of `harness.judge.report.part_view.PartView`, by the name of the part."""
    page_sections: Mapping[str, str] = field(default_factory=dict)
    """Places of what adds to a page: under `history` (`harness.judge.history.section`), and under `report` or `details`
    (`harness.judge.report.sections`)."""
    record_sources: Mapping[str, str] = field(default_factory=dict)
    """Places of what opens records that are not one file of JSON lines: by the suffix of a file, or under `MANY_FILES`,
    `(files, say) -> RecordSource`; under `URL` `(url, say) -> RecordSource` (`harness.measure.records.index`)."""
    cache_kinds: tuple[CacheKind, ...] = ()
    explanations: Mapping[str, str] = field(default_factory=dict)
    """Places of what shows the kernels of a case that moved, by the command: `gate`, `compare` or `side by side`
    (`harness.judge.confirm.explainer`)."""
    watchers: tuple[str, ...] = ()
    """Places of what watches each case of a history (`harness.judge.history.asv_process.CaseWatcher`)."""
    pytest_plugin: str = ""
    """Module with the options, hooks and fixtures of a pytest run that asks for correctness tests
    (`harness.pytest_plugin.plugin`)."""
    asv_plugin: str = ""
    """Module that asv loads with a history of releases."""
    jobs: Mapping[str, JobKind] = field(default_factory=dict)
    """Kinds of jobs by name; `harness.compile.artifacts.keys.module_version` is for their keys."""
    quirks: str = ""
    """Place of a tuple of known defects of TVM (`harness.compile.quirks.base.Quirk`). The folder `reports` beside that
    module has a report of each."""
    doctor_checks: Mapping[str, str] = field(default_factory=dict)
    """Places of checks of this host, by what they check (`harness.tools.shared.finding.Check`)."""
    shared_store: str = ""
    """Place of a class of a URL and of what hears of its failures (`harness.compile.artifacts.pool.SharedStore`)."""
    remote_devices: str = ""
    """Place of a function of the address of a tracker, which returns the devices of other hosts behind it
    (`device_runner.workers.DeviceSource`)."""
    labelled: str = ""
    """Place of a function of a suite's `labelled` and `score` of a model, and of the cache, which returns a
    `harness.compile.models.spec.LabelledData`."""
    live_screen: str = ""
    """Place of a `harness.judge.report.screen.Screen` that shows the matrix of a run."""
    side_by_side: str = ""
    """Place of a function that measures two requests in turns (`harness.tools.ab.side_by_side`)."""
    remote_builders: str = ""
    """Place of a class that builds on other hosts (`harness.compile.artifacts.pool.RemoteBuilders`)."""


@cache
def tools() -> tuple[Tool, ...]:
    """Return every tool. Raises UsageError for one of `ADRENO_BENCH_TOOLS` that is not there."""
    more = map(str.strip, os.environ.get(VARIABLE, "").split(","))
    return tuple(_tool(module) for module in (*TOOLS, *filter(None, more)))


def places(kind: str) -> Iterator[tuple[str, str]]:
    """Yield names and places of what tools add to a mapping of `Tool`, such as `record_parts`."""
    for tool in tools():
        yield from getattr(tool, kind).items()


def added(kind: str, key: str) -> list[Any]:
    """Load what tools add under a key to a mapping of `Tool`, such as to `page_sections` under `report`."""
    return [load(place) for name, place in places(kind) if name == key]


def place_of(kind: str) -> str:
    """Return the place that the first tool which has one brings, such as `live_screen`."""
    of_each: list[str] = [getattr(tool, kind) for tool in tools()]
    return next(filter(None, of_each))


def _tool(module: str) -> Tool:
    hint = f"correct {VARIABLE}, or set PYTHONPATH to the folder that has {module}"
    try:
        tool = load(f"{module}:TOOL")
    except Exception as error:  # the code of others runs here
        raise UsageError(f"{module} is not a tool: {error}", hint=hint) from error
    if not isinstance(tool, Tool):
        raise UsageError(f"{module} is not a tool: its TOOL is a value of {type(tool).__name__}", hint=hint)
    return tool
