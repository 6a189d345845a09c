"""What is to be done for a case on a device: what to build, what to ask the oracle, how long to sample.

Planning compiles nothing. It ends in jobs whose keys say whether the store has their results already.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from device_runner.device import Identity, ThermalLimits
from device_runner.names import suggestion
from harness.build.compile import CompileRequest
from harness.build.link import host_triple, linker_version
from harness.build.pool import Job, compile_job, oracle_job, reference_job
from harness.cases.case import Case
from harness.cases.suite import OnnxModel, Suite, model_name
from harness.failures import UsageError
from harness.models.sources import model_source
from harness.models.spec import ModelSource
from harness.paths import PATHS
from harness.quirks import quirks_for
from harness.run.timing import Budget
from harness.store import sha256_of

CONTESTANTS = sorted(set(PATHS) - {"cpu"})
"""The paths that a suite may name; `cpu` is the oracle."""

SEED = 20_260
"""Of the inputs. A constant, so that answers can be kept and records compared."""


@dataclass(frozen=True)
class Plan:
    """One case on one device."""

    case: Case
    compile: Job
    oracle: Job
    quirks: tuple[str, ...]
    relative_tolerance: float
    budget: Budget
    thermal_limits: ThermalLimits = field(default_factory=ThermalLimits)
    reference: Job | None = None
    """Makes the reference kernel that is timed in the same session."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All that has to be made before it can be run and timed."""
        return (self.compile, self.oracle, *([self.reference] if self.reference else []))


def check(suite: Suite, cases: Sequence[Case], cache: Path) -> None:
    """Raise UsageError for a path that does not exist or a model that cannot be used, before anything is started."""
    for case in cases:
        if case.path not in CONTESTANTS:
            raise UsageError(f"there is no path {case.path!r}", hint=suggestion(case.path, CONTESTANTS))
    for name in dict.fromkeys(case.model for case in cases):
        _source(suite, name).onnx_file(cache / "models")


def model_digest(suite: Suite, name: str, cache: Path) -> str:
    """SHA-256 of a model's ONNX file. Raises UsageError if the model cannot be used."""
    file = _source(suite, name).onnx_file(cache / "models")
    return _digest(file, file.stat().st_mtime_ns)


def plan_case(
    suite: Suite, case: Case, identity: Identity, cache: Path, as_shipped: bool, but_for: Sequence[str] = ()
) -> Plan:
    """Plan one case for a device, as shipped but for some quirks if so asked.

    Raises UsageError if its model cannot be used.
    """
    source = _source(suite, case.model)
    triple = host_triple(identity)
    model_file = source.onnx_file(cache / "models")
    quirks = tuple(quirk.id for quirk in quirks_for(case.path, case.precision, as_shipped=as_shipped, but_for=but_for))
    request = CompileRequest(
        model_file=str(model_file),
        input_shapes=_shapes(suite, case.model),
        path=case.path,
        precision=case.precision.value,
        as_shipped=as_shipped,
        host_triple=triple,
        image2d_max_width=identity.image2d_max_width,
        image2d_max_height=identity.image2d_max_height,
        image_max_array_layers=identity.image_max_array_layers,
        linker=linker_version(triple),
        but_for=[quirk for quirk in quirks if quirk in but_for],  # no other makes another build
    )
    of_oracle = dataclasses.replace(
        request,
        path="cpu",
        precision="float32",
        as_shipped=False,
        but_for=(),
        host_triple=None,
        image2d_max_width=0,
        image2d_max_height=0,
        image_max_array_layers=0,
        linker="",
    )
    digest = _digest(model_file, model_file.stat().st_mtime_ns)
    return Plan(
        case=case,
        compile=compile_job(request, digest, quirks, case.id),
        oracle=oracle_job(of_oracle, digest, SEED, f"oracle of {case.model}"),
        quirks=quirks,
        relative_tolerance=suite.relative_tolerance(case),
        budget=Budget(suite.budget_s, suite.samples, suite.limits.run_s),
        thermal_limits=suite.steady.thermal_limits(identity.serial),
        reference=reference_job(request),
    )


def _model(suite: Suite, name: str) -> str | OnnxModel:
    return next(model for model in suite.models if model_name(model) == name)


def _source(suite: Suite, name: str) -> ModelSource:
    model = _model(suite, name)
    if isinstance(model, OnnxModel):
        return model_source(name, onnx=model.onnx, shapes=model.shapes)
    return model_source(name)


def _shapes(suite: Suite, name: str) -> dict[str, list[int]] | None:
    model = _model(suite, name)
    return model.shapes or None if isinstance(model, OnnxModel) else None


@lru_cache(maxsize=256)
def _digest(file: Path, _changed: int) -> str:
    return sha256_of(file)
