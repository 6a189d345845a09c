"""Options that several commands share, each written once, and the groups in which they come."""

from __future__ import annotations

import fnmatch
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from device_runner.files import require_writable, what_else
from device_runner.names import load, suggestion
from harness.base.case import Axes, Case, Precision, Tuning
from harness.base.failures import UsageError
from harness.base.program import with_programs
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.cli import completion
from harness.compile.paths import PATHS
from harness.compile.quirks import policy_of, quirks_of

if TYPE_CHECKING:
    from harness.base.model import Model
    from harness.base.outcome import ExitCode
    from harness.base.suite import Suite
    from harness.measure.records.record import Record
    from harness.measure.workbench import Request

WRITE_RECORDS = "harness.judge.report.exports:write_records"
"""Place of what only these options need."""
SUITE_HELP = "Suite file."
CASE_HELP = "Only cases whose id matches, for example 'resnet18-*' or '*-clml-*-tuned'. Repeatable."
PATH_HELP = "Path to use instead of those of the suite: opencl, texture or clml. Repeatable."
PRECISION_HELP = "Precision to use instead of those of the suite: float32, float16 or float16_acc32. Repeatable."
TUNING_HELP = "Tuning to use instead of those of the suite: untuned or tuned. Repeatable."
DEVICE_HELP = "Device: virtual, local, an adb serial (see `adreno-bench devices`), or labels."
AS_SHIPPED_HELP = "Use only the essential workarounds, without which nothing compiles."
WITH_QUIRK_HELP = "With --as-shipped: also work around this defect. Repeatable."
BASELINES_HELP = "Folder of baselines."
SCHEDULES_HELP = "File of tuned schedules. Cases on opencl and texture also run with them."

DEFAULT_DEVICE = "virtual"
DEFAULT_BASELINES = Path("baselines")
DEFAULT_SUITE = Path(completion.DEFAULT_SUITE)
DEFAULT_RECORDS = Path(completion.DEFAULT_RECORDS)

MODELS, WORKAROUNDS, THRESHOLDS = "Models", "Workarounds", "Thresholds"
DEVICES, OUTPUT, SELDOM = "Devices", "Output", "Seldom needed"
"""Groups of options that few need; `--help` shows them below the others."""
output_option = functools.partial(typer.Option, rich_help_panel=OUTPUT)
seldom_option = functools.partial(typer.Option, rich_help_panel=SELDOM)
model_option = functools.partial(typer.Option, rich_help_panel=MODELS)
workaround_option = functools.partial(typer.Option, rich_help_panel=WORKAROUNDS)
threshold_option = functools.partial(typer.Option, rich_help_panel=THRESHOLDS)
device_option = functools.partial(typer.Option, rich_help_panel=DEVICES)

SuiteFile = Annotated[Path, typer.Option("--suite", metavar="FILE", help=SUITE_HELP, show_default=True)]
CaseGlob = Annotated[
    list[str] | None, typer.Option("--case", metavar="GLOB", help=CASE_HELP, autocompletion=completion.cases)
]
Paths = Annotated[list[str] | None, typer.Option("--path", help=PATH_HELP, autocompletion=completion.paths)]
Precisions = Annotated[list[Precision] | None, seldom_option("--precision", metavar="PRECISION", help=PRECISION_HELP)]
Tunings = Annotated[list[Tuning] | None, seldom_option("--tuning", metavar="TUNING", help=TUNING_HELP)]
DeviceName = Annotated[str, typer.Option("--device", help=DEVICE_HELP, autocompletion=completion.devices)]
DeviceOfRecords = Annotated[
    str | None,
    typer.Option(
        "--device",
        help=DEVICE_HELP,
        show_default="that of the records, or virtual if there are none",
        autocompletion=completion.devices,
    ),
]
DeviceNames = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        help="Device: virtual (the default), local, an adb serial, all, labels such as soc=SM8650, or virtual:4 for "
        "four virtual phones. Repeatable.",
        autocompletion=completion.devices,
    ),
]
TrackerAddress = Annotated[
    str | None,
    device_option(metavar="HOST:PORT", help="Address of a TVM RPC tracker that offers devices of other hosts."),
]
RecordsFile = Annotated[Path, typer.Option("--records", metavar="FILE", help="Records file (JSON lines).")]
RecordsPlace = Annotated[
    str, typer.Option("--records", metavar="PLACE", help="Records: a file, a folder, a glob or a URL.")
]
RecordedGlob = Annotated[
    str | None,
    typer.Argument(metavar="GLOB", help="Only cases whose id matches.", autocompletion=completion.recorded_cases),
]
EveryRecord = Annotated[bool, typer.Option("--every", help="Show every record, not only the latest of each series.")]
FindingsAreFine = Annotated[
    bool,
    output_option("--findings-are-fine", help="Exit with 0 if the rig worked, whatever it found about the compiler."),
]
AsJson = Annotated[bool, output_option("--json", help="Print JSON instead of a table.")]
BaselinesFolder = Annotated[Path, typer.Option("--baselines", metavar="FOLDER", help=BASELINES_HELP)]


def _models_option(what: str) -> Any:
    text = f"{what}: a name in the suite, an .onnx or .pt2 file, or a network of the zoo. Repeatable."
    return typer.Option("--model", metavar="MODEL", help=text, autocompletion=completion.models)


Models = Annotated[list[str] | None, _models_option("Model to use instead of those of the suite")]
ModelsOfRecords = Annotated[list[str] | None, _models_option("Only records of this model")]
Shapes = Annotated[
    list[str] | None,
    model_option(metavar="NAME=SIZES", help="Fix a dynamic dimension: input=1x3x224x224, or batch=1. Repeatable."),
]
Inputs = Annotated[
    list[str] | None,
    model_option(
        metavar="INPUT", help="Inputs: an .npz file, or how to draw one, such as 'tokens=integers(0, 9)'. Repeatable."
    ),
]
Fixes = Annotated[
    list[str] | None,
    model_option(
        metavar="NAME=NUMBER",
        help="Replace an input by a number, such as sr=16000, before the network is compiled. Repeatable.",
    ),
]
Trust = Annotated[
    bool, model_option("--trust", help="Load a .pt2 file that contains code. Use only with files you trust.")
]

Builders = Annotated[
    str | None,
    seldom_option(metavar="ADDRESS", help="Build on the workers of this Dask scheduler, such as tcp://10.0.0.1:8786."),
]

MODEL_OPTIONS = ("model", "shape", "input", "fix", "trust")
"""The parameters of `SuiteOptions` that replace the suite's models."""


@dataclass(frozen=True)
class SuiteOptions:
    """Cases of a suite, or of other models instead of its own."""

    suite: SuiteFile = DEFAULT_SUITE
    case: CaseGlob = None
    path: Paths = None
    precision: Precisions = None
    tuning: Tunings = None
    model: Models = None
    shape: Shapes = None
    input: Inputs = None
    fix: Fixes = None
    trust: Trust = False

    @property
    def quirks(self) -> QuirkPolicy:
        """Return the policy of workarounds: all of them. Raises UsageError for impossible options."""
        return WORKED_AROUND

    @functools.cached_property
    def axes(self) -> Axes:
        """Return paths, precisions and tunings instead of the suite's. Raises UsageError for unknown ones."""
        for name in self.path or ():
            require_path(name)
        for tuning in self.tuning or ():
            if tuning.scheduled:
                raise UsageError(f"--tuning {tuning.value}: such cases come from a file", hint="pass --schedules FILE")
        return Axes(tuple(self.path or ()), tuple(self.precision or ()), tuple(self.tuning or ()))

    @property
    def models(self) -> list[Model]:
        """Return the models instead of the suite's; empty for its own. Raises UsageError."""
        from harness.base.model import models_given

        options = self.shape or (), self.input or (), self.fix or ()
        return with_programs(models_given(self.model or (), *options, trust=self.trust))

    @property
    def words(self) -> list[str]:
        """Suite and models as they are typed, without defaults: what a next command on the same cases repeats."""
        options = (("--model", self.model), ("--shape", self.shape), ("--input", self.input), ("--fix", self.fix))
        return [
            *(["--suite", str(self.suite)] if self.suite != DEFAULT_SUITE else []),
            *(word for option, values in options for value in values or () for word in (option, value)),
            *(["--trust"] if self.trust else []),
        ]

    def covers(self, case: str) -> bool:
        """Return whether a case, by its id, is of what was given; if nothing was given, every one is."""
        named = matches_models(case, self.model) and matches_globs(case, self.case)
        return named and (not self.axes or self.axes.cover(Case.parse(case)))

    def read_suite(self) -> Suite:
        """Return the suite, with the given models and axes in place of its own. Raises UsageError."""
        from harness.base.suite import suite_of

        return suite_of(self.suite, self.models).on(self.axes)

    def cases(self, suite: Suite) -> list[Case]:
        """Return the chosen cases of a suite. Raises UsageError."""
        from harness.base.suite import choose

        return choose(suite, self.case, self.axes)

    def request(self, **how: Any) -> Request:
        """Read and check the request; `how` goes to `Request.read`. Raises UsageError, SetupMissing."""
        from harness.measure.workbench import Request

        return Request.read(self.suite, self.case, self.quirks, **{"models": self.models, "axes": self.axes, **how})


@dataclass(frozen=True)
class CaseOptions(SuiteOptions):
    """Cases of a suite, and the workarounds to use."""

    as_shipped: Annotated[bool, workaround_option("--as-shipped", help=AS_SHIPPED_HELP)] = False
    with_quirks: Annotated[
        list[str] | None,
        workaround_option("--with-quirk", metavar="QUIRK", help=WITH_QUIRK_HELP, autocompletion=completion.quirks),
    ] = None
    schedules: Annotated[
        Path | None, seldom_option(metavar="FILE", help=SCHEDULES_HELP, show_default="the suite's, if it names one")
    ] = None

    @property
    def quirks(self) -> QuirkPolicy:
        """Return the policy of workarounds. Raises UsageError for impossible options."""
        return policy_of(self.as_shipped, self.with_quirks)

    def request(self, **how: Any) -> Request:
        """Read and check the request. Raises UsageError, SetupMissing."""
        return self.require_effect(super().request(schedules=self.schedules, **how))

    def require_effect(self, request: Request) -> Request:
        """Return the request itself. Raises UsageError for an option that changes none of its cases."""
        if self.schedules and not any(case.tuning.scheduled for case in request.cases):
            raise UsageError(
                f"--schedules {self.schedules} has no effect: no chosen case is built with schedules",
                hint="choose such cases with --case '*-scheduled', or leave --schedules out",
            )
        for quirk in quirks_of(self.with_quirks or ()):
            if not any(case.path in quirk.paths and case.precision in quirk.precisions for case in request.cases):
                raise UsageError(
                    f"--with-quirk {quirk.id} has no effect: no chosen case meets it",
                    hint=f"it is about {', '.join(quirk.paths)} in {', '.join(p.value for p in quirk.precisions)}",
                )
        return request


def require_output(file: Path | None) -> Path | None:
    """Return a file or folder that a command writes at its end. Raises UsageError at once if it cannot be written."""
    try:
        if file:
            require_writable(file)
    except OSError as error:
        raise UsageError(
            f"cannot write {file}: {error.strerror}", hint="name a file or folder in a folder of yours"
        ) from error
    return file


def require_output_file(file: Path | None) -> Path | None:
    """Return a file that a command writes at its end. Raises UsageError at once if it cannot be written."""
    if file and (other := what_else(file)):
        raise UsageError(f"{file} is {other}", hint=f"name a file{f' in it: {file}/NAME' * file.is_dir()}")
    return require_output(file)


file_option = functools.partial(output_option, callback=require_output_file)
"""Name what a command writes when it has measured: what cannot be written is refused before."""


def _export_option(option: str, what: str) -> Any:
    return file_option(option, metavar="FILE", help=f"Also write {what} to this file.")


@dataclass(frozen=True)
class TableExports:
    """Files that a command writes besides its table."""

    export_json: Annotated[Path | None, _export_option("--export-json", "everything as JSON")] = None
    export_csv: Annotated[Path | None, _export_option("--export-csv", "a line for each case as CSV")] = None
    export_markdown: Annotated[Path | None, _export_option("--export-markdown", "a table in Markdown")] = None

    @property
    def given(self) -> bool:
        """Whether any file was requested."""
        return any(vars(self).values())


@dataclass(frozen=True)
class RecordExports(TableExports):
    """Files that a command on records writes."""

    export_pytest_benchmark: Annotated[
        Path | None, _export_option("--export-pytest-benchmark", "samples for `pytest-benchmark compare`")
    ] = None

    def write_records(self, records: Sequence[Record], code: ExitCode) -> None:
        """Write the requested files. Raises RigFailure, OSError."""
        if self.given:
            load(WRITE_RECORDS)(records, code, **vars(self))


def matches_globs(case: str, globs: Sequence[str] | None) -> bool:
    """Return whether a case id matches any of the globs; without globs every one does."""
    return not globs or any(fnmatch.fnmatchcase(case, glob) for glob in globs)


def matching(globs: Sequence[str] | None) -> Callable[[str], bool]:
    """Return a function that says whether a case id matches any of the globs."""
    return functools.partial(matches_globs, globs=globs)


def matches_models(case: str, models: Sequence[str] | None) -> bool:
    """Return whether a case id is of one of the models that `--model` names; without models every one is."""
    if not models:
        return True
    from harness.base.model import model_name

    return Case.parse(case).model in map(model_name, with_programs(models))


def require_path(name: str) -> None:
    """Raise UsageError for an unknown path."""
    names = sorted(set(PATHS) - {"cpu"})
    if name not in names:
        raise UsageError(f"there is no path {name!r}", hint=suggestion(name, names))


def refuse_options(context: typer.Context, names: Collection[str], because: str) -> None:
    """Raise UsageError if one of these parameters was given on the command line, where it would have no effect."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source and source.name == "COMMANDLINE":
            option = parameter.opts[0]
            raise UsageError(f"{option} has no effect {because}", hint=f"leave {option} out")


Result = TypeVar("Result")


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """Return a command whose parameters may be groups of options, such as `CaseOptions`, as typer takes it.

    Each option of a group becomes a parameter of its own, where the group stands.
    """
    # Not by `get_type_hints`, which in Python 3.10 puts an Optional around an option whose default is None.
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: each.annotation for name, each in parameters.items() if is_dataclass(each.annotation)
    }

    @functools.wraps(command)
    def call(**options: Any) -> Result:
        values = {name: group(**{f.name: options.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        return command(**values, **options)

    flat: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            flat += [_as_option(field.name, types[field.name], field.default) for field in fields(groups[name])]
        else:
            flat.append(_as_option(name, parameter.annotation, parameter.default))
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return call


def _as_option(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
