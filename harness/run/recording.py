"""Collects what becomes known of a case, and turns whatever goes wrong into its outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any

from device_runner.disk import disk_full
from device_runner.failures import DeviceFailure, DeviceLost, Failure, LinkFailure, PathFailure, RigFailure, Unsupported
from device_runner.interrupt import interruption
from device_runner.store import cache_root
from harness.build.artifact import Artifact
from harness.cases.case import Case
from harness.cases.plan import Plan
from harness.failures import OutOfRange
from harness.probes.latency import device_clock
from harness.run.context import Origin
from harness.run.outcome import Outcome

if TYPE_CHECKING:
    from typing_extensions import Self

    from device_runner.device import Array, Identity, Program, Steadiness
    from harness.probes.batches import Enqueued
    from harness.probes.labelled import TopOne
    from harness.probes.latency import Timing
    from harness.probes.reference import Reference
    from harness.probes.sustained import Collected
    from harness.run.correctness import Accuracy
    from harness.run.record import Record
    from harness.run.tuning import Prepared, Proof


_EXPLAINED_BY = {
    Outcome.WRONG_RESULT: "`adreno-bench show --diverge {}` finds the first operator whose output is off",
    Outcome.KERNEL_BUILD_ERROR: "`adreno-bench show --kernels {}` prints the build log and where the kernels lie",
}
"""What a person does next, where the failure itself does not say."""


OUT_OF_RANGE_HINT = "scale the model's weights or inputs, or measure it in float32 only"


class WrongResult(PathFailure):
    """The path's answer is not the oracle's."""

    outcome = "wrong-result"


class Unproved(PathFailure):
    """The run was to be tuned, and its own evidence does not say that it was."""

    outcome = "inconclusive"


class Throttled(DeviceFailure):
    """The device did not hold its pace while it was measured."""

    outcome = "throttled"


class Stopped(SystemExit):
    """A person stopped a sustained run. Its record is kept all the same; what stopped it is the cause."""

    def __init__(self, record: Record) -> None:
        super().__init__(130)  # as of a command that Ctrl-C ended
        self.record = record


class Recording:
    """Collects what becomes known of a case, turns any failure into its outcome, and always ends with a record.

    Ctrl-C and the like pass through: a case that was interrupted has no outcome, but for a sustained run, which keeps
    what it measured (`Stopped`).
    """

    def __init__(self, case: Case, origin: Origin, *, artifact: str = "", quirks: Sequence[str] = ()) -> None:
        self._known: dict[str, Any] = {
            **vars(case),
            "case": case.id,
            "device": origin.device,
            "identity": origin.identity,
            "identity_key": origin.identity.key,
            "emulated": origin.identity.emulated,
            "artifact": artifact,
            "quirks": quirks,
            "as_shipped": origin.as_shipped,
            **origin.made_by,
            "started_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "run": origin.run,
            "outcome": Outcome.OK,
        }
        self.lost: Failure | None = None
        """The loss of the device or of what leads to it, if that is what ended the case and trying again may help."""
        self.collected: Collected | None = None
        """What a sustained run has measured so far; None of any other."""

    @classmethod
    def of(cls, plan: Plan, origin: Origin) -> Recording:
        """The recording of a planned case."""
        made = cls(plan.case, origin, artifact=plan.compile.key, quirks=plan.quirks)
        made.note(quick=plan.budget.quick, model_changes=plan.changes)
        if plan.budget.sustain_s:
            from harness.probes.sustained import Collected

            made.collected = Collected(plan.budget.sustain_s)
        return made

    def __enter__(self) -> Self:
        return self

    def note(self, **facts: Any) -> None:
        """Add facts under their names in the record."""
        self._known.update(facts)

    def built(self, artifact: Artifact) -> Artifact:
        """Add what is known of the build, and hand it on."""
        self.note(
            library_bytes=artifact.size_bytes,
            compile_s=artifact.compiled.compile_s,
            facts=artifact.compiled.facts,
            offload=artifact.compiled.offload,
            reused=artifact.reused,
        )
        return artifact

    def scheduled(self, facts: Mapping[str, Any], complaint: str) -> None:
        """Add what a build's schedules changed.

        Raises Unsupported if there are none for this network, Unproved if it is no other build for them.
        """
        self.note(schedules=dict(facts))
        if complaint:
            hint = "`adreno-bench tune` looks for schedules of this network"
            raise (Unproved if facts.get("took") or facts.get("refused") else Unsupported)(complaint, hint=hint)

    def prepared(self, tuning: Prepared) -> Prepared:
        """Add the environment of the measured process, and hand it on."""
        self.note(toggles=dict(tuning.toggles))
        return tuning

    def loaded(self, program: Program) -> Program:
        """Add what loading cost, and hand the program on."""
        self.note(init_ms=program.init_ms, sent_bytes=program.pushed.sent_bytes)
        return program

    def ran(self, outputs: list[Array], first_run_ms: float) -> list[Array]:
        """Add the time of the first inference, and hand its outputs on."""
        self.note(first_run_ms=first_run_ms)
        return outputs

    def judged(self, accuracy: Accuracy, vacuous: Callable[[], list[str]], out_of_range: str = "") -> None:
        """Add the judgement, and of a right answer what it is worth.

        Raises WrongResult if it is not right, OutOfRange if none could be, and why.
        """
        self.note(accuracy=accuracy, max_abs_err=accuracy.max_abs_err, tolerance=accuracy.tolerance)
        if not accuracy.right and out_of_range:
            raise OutOfRange(out_of_range, hint=OUT_OF_RANGE_HINT, evidence=accuracy.complaint)
        if not accuracy.right:
            raise WrongResult(accuracy.complaint)
        self.note(vacuous=vacuous())

    def classified(self, top_one: TopOne) -> None:
        """Add how many labelled inputs are right. Raises WrongResult if too few are."""
        self.note(top_one=top_one)
        if top_one.dropped:
            raise WrongResult(top_one.complaint)

    def proved(self, proof: Proof) -> bool:
        """Add what the run says of itself; whether its path was emulated, so that its time means nothing.

        Raises Unproved if the run claims more than it shows.
        """
        self.note(proofs=proof.facts)
        if proof.emulated:
            self.note(emulated=(*self._known["emulated"], self._known["path"]), init_ms=None, first_run_ms=None)
        if proof.complaint:
            raise Unproved(proof.complaint)
        return proof.emulated

    def measured(self, timing: Timing, reference: Reference | None, steadiness: Steadiness) -> None:
        """Add the samples, and the reference kernel's if there are any.

        Raises Throttled, with the samples kept apart, if the device did not hold its pace.
        """
        self.note(steadiness=dict(steadiness.facts))
        if steadiness.throttled:
            self.note(throttled_ms=timing.wall_ms)
            raise Throttled(steadiness.why, hint="let it cool, or raise its `wait_s` under [steady] in the suite")
        clock = device_clock(self._known["path"]) if timing.device_ms else ""
        self.note(**vars(timing), device_clock=clock, **(vars(reference) if reference else {}))

    def enqueued(self, enqueued: Enqueued | None) -> None:
        """Add the samples of batches, if there are any."""
        self.note(**(vars(enqueued) if enqueued else {}))

    def sustained(self, steadiness: Steadiness) -> None:
        """Add how the phone was around a sustained run: that heat slowed it is what was to be found out."""
        self.note(steadiness=dict(steadiness.facts))

    @property
    def record(self) -> Record:
        """The record of what is known."""
        from harness.run.record import Record

        return Record.model_validate(self.known)

    @property
    def known(self) -> dict[str, Any]:
        """What is known, by the names of the record's fields."""
        return {**self._known, "sustained": None if self.collected is None else self.collected.so_far}

    def _has(self) -> str:
        """What the device does have, for whoever wonders why a case is unsupported."""
        identity: Identity = self._known["identity"]
        return (
            f"driver: {identity.driver}; CLML: {identity.clml or 'none'}; extensions: {' '.join(identity.extensions)}"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if stop := interruption():  # wherever its first one was lost, what failed since is no finding
            error = stop
        if not isinstance(error, Exception):
            if error and self.collected and self.collected.begun:
                self.collected.stopped = True
                raise Stopped(self.record) from error
            if stop:
                raise stop
            return False
        failure = error if isinstance(error, Failure) else _our_fault(error)
        kept = self.collected is not None and self.collected.begun  # trying again would lose it
        self.lost = failure if isinstance(failure, (DeviceLost, LinkFailure)) and not kept else None
        evidence = failure.evidence
        if isinstance(failure, Unsupported):
            evidence = f"{self._has()}\n{evidence}"
        outcome = _outcome(failure)
        hint = failure.hint or _EXPLAINED_BY.get(outcome, "").format(self._known["case"])
        self.note(outcome=outcome, message=failure.message, hint=hint, evidence=evidence)
        _release(error)
        return True


def _release(error: BaseException | None) -> None:
    """Let go of the frames that an error and its causes came through.

    They hold the session and its remote objects, in a cycle: those would be freed in the middle of some later case.
    """
    while error:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _outcome(failure: Failure) -> Outcome:
    try:
        return Outcome(failure.outcome)
    except ValueError:
        return Outcome.INFRA_ERROR


def _our_fault(error: Exception) -> Failure:
    return disk_full(error, cache_root()) or RigFailure(
        f"{type(error).__name__}: {error}",
        hint="this looks like a bug in adreno-bench; please report it with the record",
        evidence="".join(traceback.format_exception(error)),
    )
