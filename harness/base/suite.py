"""The suite: which models, on which paths, in which precisions, and how long each may take.

It is read from `adreno-bench.toml`. A wrong key or value is named with its line, because a suite that silently
measures less than it says is worse than none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, InstanceOf, PrivateAttr, ValidationError, field_validator
from pydantic import Field as field

from device_runner.device import ThermalLimits
from device_runner.files import what_else
from device_runner.names import suggestion
from harness.base.case import NO_AXES, RELATIVE_TOLERANCE, RESOLUTION, ROUNDING_FACTOR, Axes, Case, Precision, Tuning
from harness.base.failures import UsageError, reason_alone
from harness.base.model import ImageFolder, Model, OnnxModel, ProgramModel, anchored, model_name
from harness.base.program import read_programs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_PATHS = ("opencl", "texture", "clml")
SCHEDULED_PATHS = ("opencl", "texture")
"""Whose kernels are TVM's own: what CLML takes has no schedule."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(_Section):
    """Deadlines and bounds. After a deadline the case has its outcome and the suite goes on."""

    build_s: float = field(600.0, gt=0)
    build_memory_gb: float = field(8.0, gt=0)
    run_s: float = field(300.0, gt=0)
    """Timeout of one call to the device: loading, or one batch of inferences."""


class DeviceLimits(_Section):
    """How cool, idle and charged a device has to be; what is left out is as for every device."""

    gpu_c: float | None = field(None, gt=0)
    battery_c: float | None = field(None, gt=0)
    thermal_status: int | None = field(None, ge=0, le=6)
    gpu_busy_percent: int | None = field(None, ge=0, le=100)
    battery_percent: int | None = field(None, ge=0, le=100)
    wait_s: float | None = field(None, ge=0)


class SteadyLimits(DeviceLimits):
    """How cool a device has to be before it is measured, and in which limits a single device differs."""

    devices: dict[str, DeviceLimits] = {}
    """Settings of devices, by serial."""

    def thermal_limits(self, serial: str) -> ThermalLimits:
        """Return the limits of one device."""
        own = self.devices.get(serial, DeviceLimits()).model_dump(exclude_none=True)
        return ThermalLimits(**{**self.model_dump(exclude_none=True, exclude={"devices"}), **own})


class Tolerance(_Section):
    """A tolerance of some cases that is justified: what the defaults would call wrong is right here, for a reason."""

    case: str = field(min_length=1)
    """Shell glob of case ids."""
    relative: float = field(ge=RESOLUTION[Precision.FLOAT32], le=1)
    """Tolerance relative to the oracle's scale."""
    reason: str = field(pattern=r"\S")


class Suite(_Section):
    """The list of cases, as written in the suite file."""

    models: list[str | InstanceOf[ProgramModel] | OnnxModel] = field(min_length=1)
    paths: list[str] = field(min_length=1)
    precisions: list[Precision] = [Precision.FLOAT32]
    tunings: list[Tuning] = [Tuning.UNTUNED]
    budget_s: float = field(20.0, gt=0)
    """Time for the warm-up and the samples of one case; at least ten are taken however long they last."""
    samples: int = field(30, ge=10)
    """Samples of a case that are kept, where the budget reaches for so many."""
    tolerance: dict[Precision, float] = {}
    """Relative to the oracle's scale, by precision, where the default does not suit; then it holds as it is."""
    tolerances: list[Tolerance] = []
    """Tolerances by case. The last match counts, and overrides `tolerance`."""
    schedules: Path | None = None
    """File of tuned schedules (`adreno-bench tune`): each case that has kernels of TVM's is measured with them, too."""
    store: str | None = field(None, pattern=r"^[a-z0-9+]+://\S+$")
    """URL of a store that hosts share (`harness.tools.builders.shared_store`)."""
    limits: Limits = Limits()
    steady: SteadyLimits = SteadyLimits()
    _names: tuple[str, ...] = PrivateAttr(())

    @field_validator("tolerance")
    @classmethod
    def _can_be_kept(cls, tolerance: dict[Precision, float]) -> dict[Precision, float]:
        for precision, relative in tolerance.items():
            lowest = RESOLUTION[precision]
            if not lowest <= relative <= 1:
                raise ValueError(f"{precision.value} = {relative:g} is not between {lowest:.2g}, its resolution, and 1")
        return tolerance

    @field_validator("tunings")
    @classmethod
    def _are_not_of_schedules(cls, tunings: list[Tuning]) -> list[Tuning]:
        if any(tuning.scheduled for tuning in tunings):
            raise ValueError('cases with schedules come from a file: schedules = "FILE"')
        return tunings

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: list[Model]) -> list[Model]:
        names = [model_name(model) for model in models]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the model name {twice[0]!r} stands twice; give one of them another name")
        return models

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models in the suite file, where others stand in their place."""
        return self._names

    def on(self, axes: Axes) -> Suite:
        """Return the suite with these paths, precisions and tunings in place of its own."""
        return self.model_copy(update={name: list(values) for name, values in vars(axes).items() if values})

    @property
    def cases(self) -> list[Case]:
        """All cases, grouped by model so that its paths stand side by side."""
        return self._cases(self.precisions, self.tunings)

    @property
    def reachable(self) -> list[list[Case]]:
        """What a person may ask for by name, ever wider: its cases, these in every tuning, and in every precision.

        Then the same on every path.
        """
        tunings = [tuning for tuning in Tuning if not tuning.scheduled]
        everywhere = self.model_copy(update={"paths": list(dict.fromkeys((*self.paths, *DEFAULT_PATHS)))})
        return [
            cases
            for suite in (self, everywhere)
            for cases in (suite.cases, suite._cases(suite.precisions, tunings), suite._cases(list(Precision), tunings))
        ]

    def _cases(self, precisions: Sequence[Precision], tunings: Sequence[Tuning]) -> list[Case]:
        return [
            case
            for model in self.models
            for path in self.paths
            for case in (
                [Case(model.name, path, model.precision)]
                if isinstance(model, ProgramModel)
                else self._network_cases(model_name(model), path, precisions, tunings)
            )
        ]

    def _network_cases(
        self, name: str, path: str, precisions: Sequence[Precision], tunings: Sequence[Tuning]
    ) -> list[Case]:
        return [
            Case(name, path, precision, state)
            for precision in precisions
            for tuning in tunings
            for state in ([tuning, tuning.with_schedules] if self.schedules and path in SCHEDULED_PATHS else [tuning])
        ]

    @property
    def longest_case_s(self) -> float:
        """Sum of a case's own deadlines: building model and oracle, loading, sampling."""
        return 2 * self.limits.build_s + 10 * self.limits.run_s

    def justified(self, case: Case) -> Tolerance | None:
        """Return the tolerance that was written for this case, with its reason."""
        return next((tolerance for tolerance in reversed(self.tolerances) if case.matches(tolerance.case)), None)

    def relative_tolerance(self, case: Case) -> float:
        """Tolerance of a case, relative to the oracle's scale."""
        if own := self.justified(case):
            return own.relative
        return self.tolerance.get(case.precision, RELATIVE_TOLERANCE[case.precision.value])

    def rounding_factor(self, case: Case) -> float:
        """Return what the rounding of a case's network is multiplied with, to be allowed.

        0 where the suite says what is.
        """
        stated = self.justified(case) or case.precision in self.tolerance
        return 0.0 if stated else ROUNDING_FACTOR[case.precision.value]


def choose(suite: Suite, globs: Sequence[str] | None, axes: Axes = NO_AXES) -> list[Case]:
    """Return the suite's cases that match any of the globs, or else those that it could have.

    So '*-clml-*-tuned' means what it says where the suite lists untuned cases only. Raises UsageError for a glob that
    matches nothing, or nothing on these axes.
    """
    chosen = {case for glob in globs or ["*"] for case in _matching(suite, glob, axes)}
    return sorted(chosen, key=suite.reachable[-1].index)


def _matching(suite: Suite, glob: str, axes: Axes) -> list[Case]:
    for cases in suite.reachable:
        if matches := [case for case in cases if case.matches(glob) and axes.cover(case)]:
            return matches
    if any(case.matches(glob) for case in suite.reachable[-1]):
        hint = "leave one of --case, --path, --precision and --tuning out"
        raise UsageError(f"no case of the chosen path, precision and tuning matches {glob!r}", hint=hint)
    globs_that_match = sorted({f"{c.model}-*" for c in suite.cases} | {f"*-{c.path}-*" for c in suite.cases})
    raise UsageError(f"no case matches {glob!r}", hint=suggestion(glob, globs_that_match))


def suite_of(file: Path, models: Sequence[Model]) -> Suite:
    """Return the suite of a file, with some of its own models or others alone; with these, the file may be missing.

    Raises UsageError.
    """
    if not models:
        if not file.exists():
            hint = "`adreno-bench init` writes one, or name a network with --model"
            raise UsageError(f"there is no suite file {file}", hint=hint)
        return load_suite(file)
    suite = load_suite(file) if file.exists() else None
    own = {model_name(model): model for model in suite.models} if suite else {}
    chosen = [own.get(model, model) if isinstance(model, str) else model for model in models]
    try:
        result = Suite.model_validate({**(suite.model_dump() if suite else {"paths": DEFAULT_PATHS}), "models": chosen})
    except ValidationError as error:
        raise UsageError(f"--model: {_message(error.errors()[-1])}", hint="name each model once") from None
    result._names = tuple(own)
    return result


def load_suite(file: Path) -> Suite:
    """Read a suite file. Paths in it are relative to its folder. Raises UsageError with the line at fault."""
    if other := what_else(file):
        raise UsageError(f"the suite {file} is {other}, not a file", hint="name a TOML file with --suite")
    try:
        text = file.read_text(encoding="utf-8-sig")  # with the mark that editors on Windows put first
        data = tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(f"there is no suite file {file}", hint="`adreno-bench init` writes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {reason_alone(error)}", hint="name a TOML file with --suite") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}", hint="the file must be TOML") from error
    if isinstance(models := data.get("models"), list):
        try:
            data["models"] = read_programs(models, file.parent)
        except UsageError as error:
            raise UsageError(f"{file}:{_line_of(text, ['models'])}: {error.message}", hint=error.hint) from error
    try:
        suite = Suite.model_validate(data)
    except ValidationError as error:
        raise _explain(file, text, error) from None
    for tolerance in suite.tolerances:
        if not any(case.matches(tolerance.case) for case in suite.cases):
            where = f"{file}:{_line_of(text, ['tolerances'])}: tolerances"
            raise UsageError(f"{where}: no case matches {tolerance.case!r}", hint="`adreno-bench list` shows the cases")
    update: dict[str, Any] = {"models": [anchored(model, file.parent) for model in suite.models]}
    return suite.model_copy(update={**update, "schedules": file.parent / suite.schedules if suite.schedules else None})


_UNION_MEMBER = re.compile(r"str|int|OnnxModel|ImageFolder|is-instance\[\w+\]|(function|dict|list)[\w-]*\[.*\]")


_EXAMPLES = {
    "models": 'for example models = ["net.onnx"]',
    "paths": 'for example paths = ["opencl", "texture", "clml"]',
}
"""What to write for the keys that every suite needs."""
_LACKING = {"missing": "missing", "too_short": "empty"}
"""What our words are for pydantic's."""


def _explain(file: Path, text: str, error: ValidationError) -> UsageError:
    # A union reports one error per member, which is named among the keys; the last is of the table form, whose keys a
    # person can mend.
    problem: Any = error.errors()[-1]
    keys = [part for part in problem["loc"] if isinstance(part, str) and not _UNION_MEMBER.fullmatch(part)]
    where = ".".join(keys)
    line = _line_of(text, keys)
    if problem["type"] == "extra_forbidden":
        names = _known_keys(keys[:-1])
        return UsageError(f"{file}:{line}: unknown key {where!r}", hint=suggestion(keys[-1], names))
    if lacking := _LACKING.get(problem["type"]):
        example = _EXAMPLES.get(where, "docs/reference/settings.md has its values")
        return UsageError(f"{file}:{line}: the key {where!r} is {lacking}", hint=example)
    return UsageError(f"{file}:{line}: {where}: {_message(problem)} (got {problem['input']!r:.80})")


def _message(problem: Any) -> str:
    """Return what is wrong, in our words if they are ours."""
    return str(problem["msg"]).removeprefix("Value error, ")


def _line_of(text: str, keys: Sequence[str]) -> int:
    """Line of the last of nested keys, 1 if it cannot be found (a missing key has no line)."""
    lines = text.splitlines()
    start = 0
    for key in keys:
        pattern = re.compile(rf"""(^|[{{,\[.])\s*["']?{re.escape(key)}["']?\s*[=\].]""")
        start = next((i for i in range(start, len(lines)) if pattern.search(lines[i])), start)
    return start + 1


def _known_keys(parents: Sequence[str]) -> list[str]:
    sections: dict[str, type[BaseModel]] = {
        "limits": Limits,
        "models": OnnxModel,
        "models.labelled": ImageFolder,
        "tolerances": Tolerance,
        "steady": SteadyLimits,
    }
    if len(parents) > 1 and parents[0] == "steady":
        return list(DeviceLimits.model_fields)
    return list(sections.get(".".join(parents), Suite).model_fields)
