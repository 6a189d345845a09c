"""The facts of one case, and the record made from them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from device_runner.disk import disk_full
from device_runner.failures import DeviceLost, Failure, LinkFailure, PathFailure, RigFailure
from device_runner.interrupt import interruption
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.base.plan import SUSTAINED, Plan
from harness.compile.artifacts.artifact import Artifact
from harness.measure.context import Origin
from harness.measure.decide import decide
from harness.measure.facts import (
    Accuracy,
    Batches,
    Endurance,
    Environment,
    Facts,
    FirstRun,
    Judgement,
    Latency,
    Loading,
    Proof,
    RunningFact,
    RunSettings,
    Sampling,
    ScheduleEffect,
    Vacuity,
)
from harness.measure.probes.latency import device_clock
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record

_EXPLAINED_BY = {
    Outcome.WRONG_RESULT: "`adreno-bench diverge {}{}` finds the first operator whose output is off",
    Outcome.KERNEL_BUILD_ERROR: "`adreno-bench kernels {}` prints the build log and the folder of the kernels",
}
"""Hints for failures that have none of their own."""


class Stopped(SystemExit):
    """A person stopped a sustained run. Its record is kept; the cause is what stopped it."""

    def __init__(self, record: Record) -> None:
        super().__init__(130)  # as of a command that Ctrl-C ended
        self.record = record


class Recording(AbstractContextManager["Recording"]):
    """Collects the facts of a case, and makes a record of them. It decides nothing: `harness.measure.decide` does.

    A context manager: a failure that ends it is a fact. Ctrl-C and the like pass through, because a case that was
    interrupted has no outcome; but a sustained run keeps what it measured (`Stopped`).
    """

    def __init__(
        self,
        case: Case,
        origin: Origin,
        *,
        artifact: str = "",
        quirks: Sequence[str] = (),
        advice: Mapping[Outcome, str] | None = None,
    ) -> None:
        """`advice` stands in place of what a person is told to do next, by outcome."""
        self.facts = Facts()
        self._identity, self._models = origin.identity, origin.models
        self._advice = _EXPLAINED_BY if advice is None else advice
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
    def of(cls, plan: Plan, origin: Origin, advice: Mapping[Outcome, str] | None = None) -> Recording:
        """Return the recording of a planned case."""
        recording = cls(plan.case, origin, artifact=plan.compile.key, quirks=plan.quirks, advice=advice)
        recording.note(network=plan.oracle.payload.get("network", ""), truth=plan.oracle.key)
        recording.note(quick=plan.budget.quick, model_changes=plan.changes, model_options=plan.model_options)
        if plan.budget.sustain_s:
            # Even a case that fails before its probe is of a series that no other compares with.
            recording.note(standalone=True, parts={SUSTAINED: {"asked_s": plan.budget.sustain_s}})
        return recording

    def note(self, **fields: Any) -> None:
        """Add fields of the record."""
        self._fields.update(fields)

    @property
    def lost(self) -> Failure | None:
        """The loss of the device or of the way to it, if that ended the case and trying again may help."""
        failure = self.facts.failure
        return failure if isinstance(failure, (DeviceLost, LinkFailure)) and not self.facts.running else None

    @property
    def gpu_reset(self) -> Failure | None:
        """The failure of a case in which the GPU was reset, which may be the program's doing or not."""
        failure = self.facts.failure
        return failure if isinstance(failure, PathFailure) and failure.gpu_resets else None

    @property
    def record(self) -> Record:
        """The record of the facts."""
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
            "hint": decision.hint or self._advice.get(decision.outcome, "").format(self._fields["case"], self._models),
            "evidence": evidence + decision.evidence,
        }
        parts = dict(self._fields.get("parts", {}))
        for fact in self.facts:
            if decision.outcome is Outcome.WRONG_RESULT and isinstance(fact, (Latency, Batches)):
                continue  # it was right at first, and not any more
            make: Callable[[Any], Mapping[str, Any]] = _FIELDS.get(type(fact), _part_of)
            values = dict(make(fact))
            parts |= values.pop("parts", {})
            fields.update(values)
        fields["parts"] = parts
        if fields.get("device_ms"):
            fields["device_clock"] = device_clock(fields["path"])
        if (proof := self.facts.get(Proof)) and proof.emulated:
            fields.update(emulated=(*self._identity.emulated, fields["path"]), init_ms=None, first_run_ms=None)
        return fields

    def _device_words(self) -> str:
        """Return what the device does have, which explains why a case is unsupported."""
        identity = self._identity
        extensions = " ".join(identity.extensions)
        return f"driver: {identity.driver}; CLML: {identity.clml or 'none'}; extensions: {extensions}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if stop := interruption():  # wherever its first one was lost, what failed since is no finding
            error = stop
        if error is None:
            return False
        if not isinstance(error, Exception):
            if running := self.facts.running:
                running.stop()
                raise Stopped(self.record) from error
            if stop:
                raise stop
            return False
        self.facts.failure = error if isinstance(error, Failure) else _our_fault(error)
        _release(error)
        return True


def _build_fields(artifact: Artifact) -> Mapping[str, Any]:
    compiled = artifact.compiled
    times = {"compile_s": compiled.compile_s, "compile_cpu_s": compiled.compile_cpu_s}
    facts: dict[str, Any] = {"facts": compiled.facts, **times}
    if compiled.offload:
        facts["parts"] = {"offload": compiled.offload}
    if compiled.effective_quirks is not None:
        facts["effective_quirks"] = tuple(compiled.effective_quirks)
    return {**facts, "library_bytes": artifact.size_bytes, "reused": artifact.reused}


def _latency_fields(latency: Latency) -> Mapping[str, Any]:
    """Build the fields of samples; if the device did not keep its pace, `throttled_ms`, which nothing compares."""
    around, timing = {"steadiness": dict(latency.steadiness.facts)}, latency.timing
    if latency.steadiness.throttled:
        return {**around, "throttled_ms": timing.wall_ms}
    sampling = Sampling(timing.warm_up_ms, timing.warmed_up, timing.inferences)
    parts = parts_of(sampling, latency.reference)
    return {**around, "wall_ms": timing.wall_ms, "device_ms": timing.device_ms, "parts": parts}


def _part_of(fact: object) -> Mapping[str, Any]:
    """Return a fact as a part of the record; nothing if its type is none."""
    return {"parts": parts_of(fact.so_far if isinstance(fact, RunningFact) else fact)}


_FIELDS: Mapping[type, Callable[[Any], Mapping[str, Any]]] = {
    Artifact: _build_fields,
    ScheduleEffect: lambda schedules: {"schedules": dict(schedules.fields)},
    Environment: lambda environment: {"toggles": dict(environment.toggles)},
    RunSettings: lambda settings: {"settings": dict(settings.values)},
    Loading: vars,
    FirstRun: lambda first: {"first_run_ms": first.ms},
    Accuracy: lambda it: {"accuracy": it, "max_abs_err": it.max_abs_err, "tolerance": it.tolerance},
    Judgement: vars,
    Vacuity: lambda vacuity: {"vacuous" if vacuity.whole else "partly_vacuous": vacuity.reasons},
    Proof: lambda proof: {"proofs": proof.facts},
    Latency: _latency_fields,
    Endurance: lambda endurance: {"steadiness": dict(endurance.steadiness.facts)},
}
"""The fields of a record that each fact fills, of the facts that are not plainly a part of it.

Other facts are for `harness.measure.decide` alone."""


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
