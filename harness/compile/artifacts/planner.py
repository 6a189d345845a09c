"""Makes the plan of a case on a device: which quirks are worked around, what to build, what to ask the oracle.

Planning compiles nothing. It ends in jobs whose keys say whether the store has their results already. No other place
decides about quirks.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from device_runner.device import Identity
from device_runner.failures import Failure, Unsupported
from device_runner.names import suggestion
from device_runner.runtimes.cross_linker import TRIPLES
from device_runner.store import key_of, sha256_of
from harness.base.case import Case, Precision
from harness.base.failures import ModelError, UnsupportedOperator, UsageError
from harness.base.model import InnerModel, Model, OnnxModel, ProgramModel, model_name
from harness.base.plan import Budget, Job, Plan, no_double, unsupported
from harness.base.program import program_kind
from harness.base.request import WORKED_AROUND, CompileRequest, QuirkPolicy
from harness.base.suite import Suite
from harness.compile.artifacts.keys import (
    compile_job,
    linker_version,
    oracle_job,
    plain_inputs,
    range_job,
    reference_job,
)
from harness.compile.compiler.releases import onnx_operators
from harness.compile.models.named import labelled_data
from harness.compile.models.onnx_read import parse
from harness.compile.models.outline import require_known
from harness.compile.models.sources import MODELS, OnnxFile, model_source
from harness.compile.models.spec import ModelSource
from harness.compile.paths import PATHS
from harness.compile.quirks import quirks_for
from harness.compile.schedules.database import read, require_limits

CONTESTANTS = sorted(set(PATHS) - {"cpu"})
"""The paths that a suite may name; `cpu` is the second witness."""

SEED = 20_260
"""Seed of the inputs. A constant, so that answers can be kept and records compared."""


def check(suite: Suite, cases: Sequence[Case], cache: Path) -> None:
    """Raise UsageError for a path that does not exist or models that cannot be used, before anything is started."""
    for case in cases:
        if case.path not in CONTESTANTS:
            raise UsageError(f"there is no path {case.path!r}", hint=suggestion(case.path, CONTESTANTS))
    if any(case.tuning.scheduled for case in cases):
        read(_schedules(suite))
    problems = [problem for name in _networks(suite, cases) if (problem := _problem(suite, name, cache))]
    if len(problems) > 1:
        raise ModelError(f"{len(problems)} models cannot be used: {'; '.join(map(str, problems))}")
    for problem in problems:
        raise problem


def _problem(suite: Suite, name: str, cache: Path) -> UsageError | None:
    """Return why a network cannot be used. One of the zoo cannot be wrong, and is made when it is wanted."""
    try:
        model = _Model.of(suite, name, cache)
    except UsageError as error:
        return error
    if not isinstance(model.source, OnnxFile):
        return None
    try:
        model.source.prepare(model.folder)
    except UsageError as error:
        return _naming(model.source.file, error)
    return None


def _naming(file: Path, failure: Failure) -> ModelError:
    """Return the failure as one whose message names the model's file."""
    message = failure.message if file.name in failure.message else f"{file}: {failure.message}"
    return ModelError(message, hint=failure.hint, evidence=failure.evidence)


def require_operators(suite: Suite, cases: Sequence[Case], cache: Path) -> None:
    """Raise `ModelError` for a file with operators that the installed TVM cannot read, all of them at once.

    In a suite file such a model is a case's outcome: another release may know the operators.
    """
    for name in _networks(suite, cases):
        model = _Model.of(suite, name, cache)
        if isinstance(model.source, OnnxFile):
            try:
                require_known(parse(model.file), onnx_operators())
            except UnsupportedOperator as lacking:
                raise _naming(model.source.file, lacking) from None


def model_digest(suite: Suite, name: str, cache: Path) -> str:
    """Hash of a model's ONNX file and of the inputs that were given for it, or of what a program is judged by.

    Raises UsageError if the model cannot be used.
    """
    if program := program_of(suite, name):
        return program_kind(program.kind).truth(program).key
    return _Model.of(suite, name, cache).digest


def plan_case(
    suite: Suite,
    case: Case,
    identity: Identity,
    cache: Path,
    policy: QuirkPolicy = WORKED_AROUND,
    *,
    quick: bool = False,
    sustain_s: float = 0.0,
    repeat: int = 1,
) -> Plan:
    """Plan one case for a device, for a `quick` look with the fewest samples, or to be kept running for `sustain_s`.

    Neither is timed beside the reference kernel. `repeat` inferences are judged, each on a draw of the inputs.

    Raises UsageError if its model cannot be used.
    """
    budget = Budget(suite.budget_s, suite.samples, suite.limits.run_s, quick, sustain_s)
    if program := program_of(suite, case.model):
        return _plan_program(program, suite, case, identity, policy, budget)
    model = _Model.of(suite, case.model, cache)
    request, digest = _request(case, model.file, identity, policy), model.digest
    default = compile_job(request, digest, case.by_default.id) if case.tuning.scheduled else None
    if default:
        request = _with_schedules(request, suite, identity)
    oracle = model.oracle
    half = case.precision is not Precision.FLOAT32
    return Plan(
        case=case,
        compile=compile_job(request, digest, case.id),
        default_schedules=default,
        schedules=request.schedules_sha256,
        oracle=oracle,
        repeats=tuple(model.oracle_of(SEED + draw) for draw in range(1, repeat)),
        range=range_job(oracle, f"range of {case.model}") if half else None,
        quirks=tuple(request.quirks),
        relative_tolerance=suite.relative_tolerance(case),
        rounding_factor=suite.rounding_factor(case),
        budget=budget,
        changes=model.source.changes(model.folder),
        thermal_limits=suite.steady.thermal_limits(identity.serial),
        reference=None if quick or sustain_s else reference_job(request),
        unsupported=unsupported(case, identity) or no_double(identity, model.double) or _without_schedules(suite, case),
    )


def plan_oracle(suite: Suite, model: str, cache: Path) -> Job:
    """Return what finds out the truth about a model, on this machine's own CPU: for every device, precision and path.

    Raises UsageError if the model cannot be used.
    """
    if program := program_of(suite, model):
        return program_kind(program.kind).truth(program)
    return _Model.of(suite, model, cache).oracle


def program_of(suite: Suite, name: str) -> ProgramModel | None:
    """Return the program of this name; None if that is a network."""
    model = _model_of(suite, name)
    return model if isinstance(model, ProgramModel) else None


def _model_of(suite: Suite, name: str) -> Model:
    return next(model for model in suite.models if model_name(model) == name)


def _networks(suite: Suite, cases: Sequence[Case]) -> list[str]:
    """Return the names of the networks of cases, each once."""
    return [name for name in dict.fromkeys(case.model for case in cases) if not program_of(suite, name)]


def _plan_program(
    program: ProgramModel, suite: Suite, case: Case, identity: Identity, policy: QuirkPolicy, budget: Budget
) -> Plan:
    """Plan a case that only a tool runs."""
    kind = program_kind(program.kind)
    job = kind.build(program, case, policy, host_triple(identity))
    return Plan(
        case=case,
        compile=job,
        oracle=kind.truth(program),
        quirks=tuple(job.payload["quirks"]),
        relative_tolerance=suite.relative_tolerance(case),
        rounding_factor=suite.rounding_factor(case),
        budget=budget,
        thermal_limits=suite.steady.thermal_limits(identity.serial),
        unsupported=unsupported(case, identity) or kind.unsupported(program, case.path),
        program=program,
    )


def witness_request(file: Path) -> CompileRequest:
    """Return a request of a model for LLVM on this machine, which is the second witness."""
    return CompileRequest(
        model_file=str(file),
        path="cpu",
        precision="float32",
        quirks=[],
        host_triple=None,
        image2d_max_width=0,
        image2d_max_height=0,
        image_max_array_layers=0,
    )


def device_request(identity: Identity) -> CompileRequest:
    """Return a request with all that the device decides; callers set the model, the path and what belongs to them.

    Raises `Unsupported` for a processor that no artifact can be made for.
    """
    triple = host_triple(identity)
    return CompileRequest(
        model_file="",
        path="cpu",
        precision=Precision.FLOAT32.value,
        quirks=[],
        host_triple=triple,
        image2d_max_width=identity.image2d_max_width,
        image2d_max_height=identity.image2d_max_height,
        image_max_array_layers=identity.image_max_array_layers,
        linker=linker_version(triple),
    )


def host_triple(identity: Identity) -> str | None:
    """LLVM triple of the device's host code, None for that of this machine.

    Raises `Unsupported` for a processor that no artifact can be made for.
    """
    if identity.kind != "phone" or identity.abi in ("", platform.machine()):
        return None
    if identity.abi not in TRIPLES:
        raise Unsupported(
            f"no artifact can be made for the ABI {identity.abi}", hint=f"use one of {', '.join(TRIPLES)}"
        )
    return TRIPLES[identity.abi]


def _request(case: Case, file: Path, identity: Identity, policy: QuirkPolicy) -> CompileRequest:
    as_shipped, but_for = policy.as_shipped, policy.with_quirks
    quirks = [quirk.id for quirk in quirks_for(case.path, case.precision, as_shipped=as_shipped, but_for=but_for)]
    chosen = device_request(identity)
    return replace(chosen, model_file=str(file), path=case.path, precision=case.precision.value, quirks=quirks)


def _with_schedules(request: CompileRequest, suite: Suite, identity: Identity) -> CompileRequest:
    """Return the request with the suite's schedules. Raises UsageError if they are for another kind of device."""
    file = _schedules(suite)
    schedules = read(file)
    require_limits(file, schedules, identity)
    return replace(request, schedules=str(file.absolute()), schedules_sha256=schedules.sha256)


def _without_schedules(suite: Suite, case: Case) -> str:
    """Return why a case with schedules has none for its path; empty if it has some, or needs none."""
    if not case.tuning.scheduled or read(_schedules(suite)).of(case.path):
        return ""
    return f"{_schedules(suite).name} has no schedule for the path {case.path}; `adreno-bench tune` looks for some"


def _schedules(suite: Suite) -> Path:
    if suite.schedules is None:
        raise UsageError("the suite names no schedules", hint="pass --schedules FILE; `adreno-bench tune` writes one")
    return suite.schedules


@dataclass(frozen=True)
class _Model:
    """A model of a suite, and the folder in which it is prepared. Its properties raise UsageError if it is unusable."""

    source: ModelSource
    folder: Path

    @classmethod
    def of(cls, suite: Suite, name: str, cache: Path) -> _Model:
        """Return the model of this name. Raises UsageError if there is none."""
        model = _model_of(suite, name)
        if not isinstance(model, OnnxModel):
            return cls(model_source(name, suite.names), cache / MODELS)
        inputs = model.inputs if isinstance(model.inputs, Path) else model.drawn
        own = (
            model.clean,
            labelled_data(model.labelled, model.score, cache) if model.labelled else None,
            model.trust,
            model.fix,
            isinstance(model, InnerModel),
        )
        file = OnnxFile(name, model.onnx, model.shapes, inputs, *own)
        return cls(file, cache / MODELS)

    @cached_property
    def file(self) -> Path:
        """What is compiled."""
        return self.source.onnx_file(self.folder)

    @cached_property
    def digest(self) -> str:
        """The model's key: other inputs or labels make another model, whose cases are open again."""
        own, inputs, facts = _digest_of(self.file), self.source.input_values(self.folder), {}
        if inputs:
            facts["inputs"] = _digest_of(inputs) if isinstance(inputs, Path) else plain_inputs(inputs)
        if self.source.labelled:
            facts |= self.source.labelled.digests
        return key_of({"model": own, **facts}) if facts else own

    @property
    def double(self) -> tuple[str, ...]:
        """Operators that compute in float64; no network of the zoo has any."""
        return self.source.prepare(self.folder).double if isinstance(self.source, OnnxFile) else ()

    @property
    def oracle(self) -> Job:
        """What finds out the truth about it."""
        return self.oracle_of(SEED)

    def oracle_of(self, seed: int) -> Job:
        """Return what finds out the truth about it on the inputs of a seed; inputs of a file are always the same."""
        source, request = self.source, witness_request(self.file)
        original, inputs = source.original(self.folder), source.input_values(self.folder)
        inner = isinstance(source, OnnxFile) and source.inner
        return oracle_job(original, request, self.digest, seed, source.name, inputs, source.labelled, inner=inner)


def _digest_of(file: Path) -> str:
    return _digest_at(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _digest_at(file: Path, _changed: int) -> str:
    return sha256_of(file)
