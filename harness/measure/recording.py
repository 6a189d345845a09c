"""The facts of one case, and the record that is made of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any

from device_runner.device import PeakMemory
from device_runner.disk import disk_full
from device_runner.failures import DeviceLost, Failure, LinkFailure, RigFailure
from device_runner.interrupt import interruption
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Artifact
from harness.measure.context import Origin
from harness.measure.correctness import Accuracy
from harness.measure.decide import decide
from harness.measure.probes.base import (
    Endurance,
    Environment,
    Facts,
    FirstRun,
    Judgement,
    Latency,
    Loading,
    Schedules,
    Vacuity,
)
from harness.measure.probes.batches import Batches
from harness.measure.probes.labelled import TopOne
from harness.measure.probes.latency import device_clock
from harness.measure.probes.sustained import SustainedRun
from harness.measure.tuning import Proof
from harness.measure.witness import WitnessReport

if TYPE_CHECKING:
    from typing_extensions import Self

    from harness.measure.records.record import Record

_EXPLAINED_BY = {
    Outcome.WRONG_RESULT: "`adreno-bench diverge {}{}` finds the first operator whose output is off",
    Outcome.KERNEL_BUILD_ERROR: "`adreno-bench kernels {}` prints the build log and where the kernels lie",
}
"""What a person does next, where the failure itself does not say."""


class Stopped(SystemExit):
    """A person stopped a sustained run. Its record is kept all the same; what stopped it is the cause."""

    def __init__(self, record: Record) -> None:
        super().__init__(130)  # as of a command that Ctrl-C ended
        self.record = record


class Recording:
    """Collects the facts of a case, and makes a record of them. It decides nothing: `harness.measure.decide` does.

    A context manager: a failure that ends it is a fact. Ctrl-C and the like pass through, because a case that was
    interrupted has no outcome; but a sustained run keeps what it measured (`Stopped`).
    """

    def __init__(self, case: Case, origin: Origin, *, artifact: str = "", quirks: Sequence[str] = ()) -> None:
        self.facts = Facts()
        self._identity, self._models = origin.identity, origin.models
        self._fields: dict[str, Any] = {
            **vars(case),
            "case": case.id,
            "device": origin.device,
            "identity": origin.identity,
            "identity_key": origin.identity.key,
            "artifact": artifact,
            "quirks": quirks,
            "as_shipped": origin.as_shipped,
            **origin.made_by,
            "started_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "run": origin.run,
        }

    @classmethod
    def of(cls, plan: Plan, origin: Origin) -> Recording:
        """Return the recording of a planned case."""
        recording = cls(plan.case, origin, artifact=plan.compile.key, quirks=plan.quirks)
        recording.note(quick=plan.budget.quick, model_changes=plan.changes, model_options=plan.model_options)
        if plan.budget.sustain_s:
            recording.note(sustained=SustainedRun(plan.budget.sustain_s).so_far)
        return recording

    def note(self, **fields: Any) -> None:
        """Add fields of the record."""
        self._fields.update(fields)

    @property
    def lost(self) -> Failure | None:
        """The loss of the device or of the way to it, if that ended the case and trying again may help."""
        sustained = self.facts.get(SustainedRun)
        worth_keeping = sustained is not None and sustained.begun
        failure = self.facts.failure
        return failure if isinstance(failure, (DeviceLost, LinkFailure)) and not worth_keeping else None

    @property
    def record(self) -> Record:
        """The record of the facts."""
        from harness.measure.records.record import Record

        return Record.model_validate(self.fields)

    @property
    def fields(self) -> dict[str, Any]:
        """The facts, by the names of the record's fields."""
        decision = decide(self.facts)
        evidence = f"{self._device_words()}\n" if decision.outcome is Outcome.UNSUPPORTED else ""
        fields = {
            **self._fields,
            "emulated": self._identity.emulated,
            "outcome": decision.outcome,
            "owner": decision.owner,
            "message": decision.message,
            "hint": decision.hint or _EXPLAINED_BY.get(decision.outcome, "").format(self._fields["case"], self._models),
            "evidence": evidence + decision.evidence,
        }
        for fact in self.facts:
            if make := _FIELDS.get(type(fact)):
                fields.update(make(fact))
        if fields.get("device_ms"):
            fields["device_clock"] = device_clock(fields["path"])
        if (proof := self.facts.get(Proof)) and proof.emulated:
            fields.update(emulated=(*self._identity.emulated, fields["path"]), init_ms=None, first_run_ms=None)
        return fields

    def _device_words(self) -> str:
        """Return what the device does have, for whoever wonders why a case is unsupported."""
        identity = self._identity
        extensions = " ".join(identity.extensions)
        return f"driver: {identity.driver}; CLML: {identity.clml or 'none'}; extensions: {extensions}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if stop := interruption():  # wherever its first one was lost, what failed since is no finding
            error = stop
        if error is None:
            return False
        if not isinstance(error, Exception):
            sustained = self.facts.get(SustainedRun)
            if sustained and sustained.begun:
                sustained.stopped = True
                raise Stopped(self.record) from error
            if stop:
                raise stop
            return False
        self.facts.failure = error if isinstance(error, Failure) else _our_fault(error)
        _release(error)
        return True


def _build_fields(artifact: Artifact) -> Mapping[str, Any]:
    compiled = artifact.compiled
    facts: dict[str, Any] = {"facts": compiled.facts, "offload": compiled.offload, "compile_s": compiled.compile_s}
    if compiled.effective_quirks is not None:
        facts["effective_quirks"] = tuple(compiled.effective_quirks)
    return {**facts, "library_bytes": artifact.size_bytes, "reused": artifact.reused}


def _accuracy_fields(accuracy: Accuracy) -> Mapping[str, Any]:
    return {"accuracy": accuracy, "max_abs_err": accuracy.max_abs_err, "tolerance": accuracy.tolerance}


def _latency_fields(latency: Latency) -> Mapping[str, Any]:
    """Return samples of a device that did not keep its pace stand apart, where nothing compares them."""
    around = {"steadiness": dict(latency.steadiness.facts)}
    if latency.steadiness.throttled:
        return {**around, "throttled_ms": latency.timing.wall_ms}
    return {**around, **vars(latency.timing), **(vars(latency.reference) if latency.reference else {})}


_FIELDS: Mapping[type, Callable[[Any], Mapping[str, Any]]] = {
    Artifact: _build_fields,
    Schedules: lambda schedules: {"schedules": dict(schedules.fields)},
    Environment: lambda environment: {"toggles": dict(environment.toggles)},
    Loading: vars,
    FirstRun: lambda first: {"first_run_ms": first.ms},
    PeakMemory: lambda peak: {"peak_memory_bytes": peak.process_bytes, "peak_gpu_memory_bytes": peak.gpu_bytes},
    Accuracy: _accuracy_fields,
    Judgement: vars,
    WitnessReport: lambda report: {"witness": report},
    Vacuity: lambda vacuity: {"vacuous": vacuity.reasons},
    TopOne: lambda top_one: {"top_one": top_one},
    Proof: lambda proof: {"proofs": proof.facts},
    Latency: _latency_fields,
    Batches: vars,
    SustainedRun: lambda run: {"sustained": run.so_far},
    Endurance: lambda endurance: {"steadiness": dict(endurance.steadiness.facts)},
}
"""The fields of a record that each fact fills. Other facts are for `harness.measure.decide` alone."""


def _release(error: BaseException | None) -> None:
    """Let go of the frames that an error and its causes came through.

    They hold the session and its remote objects, in a cycle: those would be freed in the middle of some later case.
    """
    while error:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _our_fault(error: Exception) -> Failure:
    return disk_full(error, cache_root()) or RigFailure(
        f"{type(error).__name__}: {error}",
        hint="this is a bug in adreno-bench: report it with the record",
        evidence="".join(traceback.format_exception(error)),
    )
