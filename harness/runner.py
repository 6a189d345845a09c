"""One case, from plan to record: the only place that sees the whole way.

Correctness is judged before speed: a wrong answer gets no latency.
"""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from device_runner.device import Device, Identity, Steadiness, Toggles
from device_runner.failures import DeviceFailure, Failure, PathFailure, RigFailure, Unsupported
from harness.accuracy import Accuracy, judge
from harness.build import Answers, Artifact, Builder, versions
from harness.case import Precision, Tuning
from harness.measure import Timing, measure
from harness.oracle import INPUTS, OUTPUTS, load_arrays
from harness.outcome import Outcome
from harness.plan import Plan
from harness.progress import Progress, Silent
from harness.record import Record, RecordFile, series_key
from harness.tuning import TUNERS, Proof, TuningStore

if TYPE_CHECKING:
    from typing_extensions import Self

Built = Mapping[str, Artifact | Answers | Failure]
T = TypeVar("T")


class WrongResult(PathFailure):
    """The path's answer is not the oracle's."""

    outcome = "wrong-result"


class Unproved(PathFailure):
    """The run was to be tuned, and its own evidence does not say that it was."""

    outcome = "inconclusive"


class Throttled(DeviceFailure):
    """The device did not hold its pace while it was measured."""

    outcome = "throttled"


@dataclass(frozen=True)
class Run:
    """What all records of one run have in common."""

    device: Device
    tunings: TuningStore
    as_shipped: bool = False
    timed: bool = True
    """Whether right answers are also timed. A correctness gate has no use for it."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])


def run_suite(
    plans: Sequence[Plan],
    run: Run,
    builder: Builder,
    records: RecordFile | None = None,
    progress: Progress | None = None,
) -> Iterator[Record]:
    """Build everything, then run case by case, keeping each record before it is yielded."""
    progress = progress or Silent()
    built = builder.build(job for plan in plans for job in (plan.compile, plan.oracle))
    for plan in plans:
        record = run_case(plan, built, run, progress)
        if records:
            records.append(record)
        progress.done(record)
        yield record


def missing(plans: Sequence[Plan], run: Run, kept: Sequence[Record]) -> list[Plan]:
    """The plans that no kept record has settled on this device with this artifact: what `--resume` still has to run."""
    settled = {series_key(record) for record in kept if record.outcome.settled}
    identity = run.device.identity.key
    return [plan for plan in plans if (plan.case.id, identity, plan.compile.key, run.as_shipped) not in settled]


def run_case(plan: Plan, built: Built, run: Run, progress: Progress) -> Record:
    """Carry one case from its artifact to its record. Never raises for what the case itself does wrong."""
    with Recording(plan, run) as recording:
        artifact = recording.artifact(_expect(built[plan.compile.key], Artifact))
        answers = _expect(built[plan.oracle.key], Answers)
        _require_support(plan, run.device.identity)
        inputs, expected = load_arrays(answers.folder / INPUTS), load_arrays(answers.folder / OUTPUTS)
        timeout_s, tuner, blob = plan.budget.timeout_s, TUNERS[plan.case.path], None
        toggles: Toggles = {}
        if plan.case.tuning is Tuning.TUNED:
            progress.step(plan.case.id, "tuning")
            blob = run.tunings.tuned(plan.case.path, artifact.key, run.device, artifact.loadable, inputs, timeout_s)
            toggles = tuner.toggles(run.device, blob, timeout_s)
        recording.note(toggles=dict(toggles))
        progress.step(plan.case.id, "loading")
        with run.device.session(toggles, timeout_s=timeout_s) as session:
            program = session.load(artifact.loadable, timeout_s=timeout_s)
            recording.note(init_ms=program.init_ms, sent_bytes=program.pushed.sent_bytes)
            if blob:
                tuner.use(program, blob, timeout_s)
            progress.step(plan.case.id, "first run")
            outputs, first_run_ms = program.run(inputs, timeout_s=timeout_s)
            recording.note(first_run_ms=first_run_ms)
            recording.judged(judge(outputs, expected, plan.relative_tolerance))
            emulated = recording.proved(tuner.proof(session, tuned=blob is not None, timeout_s=timeout_s))
            if run.timed and not emulated:
                progress.step(plan.case.id, "sampling")
                recording.measured(*run.device.steadily(lambda: measure(program, plan.budget), plan.gate))
    return recording.record


class Recording:
    """Collects what becomes known of a case, turns any failure into its outcome, and always ends with a record.

    Ctrl-C and the like pass through: a case that was interrupted has no outcome.
    """

    def __init__(self, plan: Plan, run: Run) -> None:
        identity = run.device.identity
        self._known: dict[str, Any] = {
            **vars(plan.case),
            "case": plan.case.id,
            "device": run.device.name,
            "identity": identity,
            "identity_key": identity.key,
            "emulated": identity.emulated,
            "artifact": plan.compile.key,
            "quirks": plan.quirks,
            "as_shipped": run.as_shipped,
            **versions(),
            "harness": version("adreno-bench"),
            "started_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "run": run.id,
            "outcome": Outcome.OK,
        }

    def __enter__(self) -> Self:
        return self

    def note(self, **facts: Any) -> None:
        """Add facts under their names in the record."""
        self._known.update(facts)

    def artifact(self, artifact: Artifact) -> Artifact:
        """Add what is known of the build, and hand it on."""
        self.note(
            library_bytes=artifact.size_bytes,
            compile_s=artifact.compiled.compile_s,
            facts=artifact.compiled.facts,
            offload=artifact.compiled.offload,
            reused=artifact.reused,
        )
        return artifact

    def judged(self, accuracy: Accuracy) -> None:
        """Add the judgement. Raises WrongResult if the answer is not right."""
        self.note(accuracy=accuracy, max_abs_err=accuracy.max_abs_err, tolerance=accuracy.tolerance)
        if not accuracy.right:
            raise WrongResult(accuracy.complaint)

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

    def measured(self, timing: Timing, steadiness: Steadiness) -> None:
        """Add the samples. Raises Throttled, with the samples kept apart, if the device did not hold its pace."""
        self.note(steadiness=dict(steadiness.facts))
        if steadiness.throttled:
            self.note(throttled_ms=timing.wall_ms)
            raise Throttled(steadiness.why, hint="let it cool, or raise its `wait_s` under [steady] in the suite")
        self.note(**vars(timing))

    @property
    def record(self) -> Record:
        """The record of what is known."""
        return Record.model_validate(self._known)

    def _has(self) -> str:
        """What the device does have, for whoever wonders why a case is unsupported."""
        identity: Identity = self._known["identity"]
        return (
            f"driver: {identity.driver}; CLML: {identity.clml or 'none'}; extensions: {' '.join(identity.extensions)}"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        failure = error if isinstance(error, Failure) else _our_fault(error)
        evidence = failure.evidence
        if isinstance(failure, Unsupported):
            evidence = f"{self._has()}\n{evidence}"
        self.note(outcome=_outcome(failure), message=failure.message, hint=failure.hint, evidence=evidence)
        return True


def _expect(built: Artifact | Answers | Failure, kind: type[T]) -> T:
    if isinstance(built, Failure):
        raise built
    if not isinstance(built, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(built).__name__}")
    return built


def _require_support(plan: Plan, identity: Identity) -> None:
    if plan.case.precision is not Precision.FLOAT32 and not identity.fp16:
        raise Unsupported(f"{identity.gpu or identity.serial} cannot compute in half precision (no cl_khr_fp16)")


def _outcome(failure: Failure) -> Outcome:
    try:
        return Outcome(failure.outcome)
    except ValueError:
        return Outcome.INFRA_ERROR


def _our_fault(error: Exception) -> Failure:
    return RigFailure(
        f"{type(error).__name__}: {error}",
        hint="this looks like a fault of adreno-bench; please report it with the record",
        evidence="".join(traceback.format_exception(error)),
    )
