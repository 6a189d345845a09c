"""The facts of one program: what becomes known of it, as frozen data, in the order in which it does.

`harness.measure.decide` says what they mean. A fact whose type is registered as a part of a record is kept as that part
(`harness.measure.records.parts`); `harness.measure.recording` makes the record's own fields of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from device_runner.device import Array, Steadiness
    from device_runner.failures import Failure

T = TypeVar("T")


@dataclass(frozen=True)
class ScheduleEffect:
    """What tuned schedules changed in a build."""

    fields: Mapping[str, Any]
    """The fields of a record."""
    complaint: str
    """Why the build does not count as one with tuned schedules; empty if it does."""

    @property
    def tried(self) -> bool:
        """Whether the file has any for this network."""
        return bool(self.fields.get("took") or self.fields.get("refused"))


@dataclass(frozen=True)
class Environment:
    """The toggles of the measured process."""

    toggles: Mapping[str, str]


@dataclass(frozen=True)
class RunSettings:
    """Settings that a run chose on the device or got from the suite. Other settings are another build."""

    values: Mapping[str, int]
    """By the key of the suite that pins it."""


@dataclass(frozen=True)
class HalfRange:
    """For half precision: why no answer can be right; empty if one can."""

    complaint: str


@dataclass(frozen=True)
class Loading:
    """Cost of loading the program."""

    init_ms: float
    sent_bytes: int


@dataclass(frozen=True)
class FirstRun:
    """The first inference."""

    ms: float


@dataclass(frozen=True)
class Answer:
    """Outputs of the first inference."""

    outputs: Sequence[Array]


@dataclass(frozen=True)
class Judgement:
    """The judge of the program's answer."""

    judge: str
    """Program and version: `onnxruntime 1.23.2`."""
    unchecked: str
    """Why no judge outside TVM could give it; empty if one did."""
    branches: tuple[str, ...] = ()
    """Which branch of each If it went through, as `then of NAME`: the other one is not judged."""


@dataclass(frozen=True)
class Accuracy:
    """How far an answer is from the oracle's, over all outputs."""

    right: bool
    max_abs_err: float
    max_rel_err: float
    """Largest error over the oracle's peak of the same output."""
    cosine: float
    """Smallest cosine similarity of an output with the oracle's."""
    top1: bool
    """Whether the largest element of every output is the oracle's. In a right output it may be another one only if the
    oracle's two lie within twice the tolerance of each other: a tie."""
    tolerance: float
    """The largest `max_abs_err` that would have been right, at the output that decided."""
    complaint: str = ""
    """One line: what is wrong, and at which output and index. Empty if right."""
    rel_rms_err: float | None = None
    """Largest root mean square of the errors of an output, over that of the oracle's; None if it was not taken."""
    ties: int = 0
    """Integers that differ from the oracle's, each of which rests on a tie within rounding."""
    varies: bool = False
    """Whether a later answer of the same program was another one, and right, too."""
    draws: int = 1
    """Inferences that were judged, each on its own draw of the inputs (`--repeat`). A wrong one is the last."""


@dataclass(frozen=True)
class WitnessReport:
    """Answer of the second witness."""

    name: str
    """Program and version: `TVM 0.27.0.post1 on LLVM`."""
    with_judge: bool
    """Whether its answer is right."""
    with_path: bool
    """Whether its answer is the path's, right or wrong."""
    first: str = ""
    """The first operator that it, and so TVM's importer, gets wrong; empty if that was not looked for or found."""
    right_in_double: bool = False
    """Whether it is right in double precision: then what it shares with the path rounds, and reads nothing wrong."""
    wrong_in_half_sums: bool = False
    """Whether it is wrong with numbers and sums in half precision, and right with the same numbers and wider sums."""

    @property
    def blames_importer(self) -> bool:
        """Whether TVM's importer, which the witness shares with the path, is to blame for a wrong answer."""
        return self.with_path and not self.with_judge and not self.right_in_double


class Objection(ABC):
    """A fact of a tool that may show that the program's answers are wrong."""

    @property
    @abstractmethod
    def complaint(self) -> str:
        """Why they are wrong, in one line; empty if nothing is."""


@dataclass(frozen=True)
class Vacuity:
    """Why being right proves nothing, a line for each such output."""

    reasons: list[str]
    whole: bool = True
    """Whether no other output proves anything either."""


@dataclass(frozen=True)
class Proof:
    """Evidence from the run itself."""

    facts: dict[str, Any] = field(default_factory=dict)
    complaint: str = ""
    """Why the run does not count as tuned; empty if it does."""
    emulated: bool = False
    """Whether the path's library was a model of itself, so that its time means nothing."""


@dataclass(frozen=True)
class Timing:
    """Samples of one case, in the order taken."""

    wall_ms: list[float]
    device_ms: list[float]
    warm_up_ms: list[float]
    """Warm-up times in ms, not samples, evenly thinned."""
    warmed_up: bool
    """Whether the warm-up ended in times that were steady within 5 %."""
    inferences: int
    """How many inferences lasted as long as the samples had to cover; `wall_ms` has some of them, evenly spread."""


@dataclass(frozen=True)
class Sampling:
    """How the samples were taken."""

    warm_up_ms: list[float]
    """Inferences before the samples, thrown away, evenly thinned."""
    warmed_up: bool | None
    """Whether the warm-up ended in steady times."""
    inferences: int | None = None
    """Number of inferences in a row, of which `wall_ms` has evenly spaced samples; None if it has them all."""


@dataclass(frozen=True)
class Reference:
    """Times of the reference kernel in the same session, by the device's timer, in ms."""

    kernel: str
    """Which kernel: two sessions may be compared where this text is the same."""
    ms: list[float]
    slowed_ms: list[float]
    """The same with 1.3 times the turns, which has to look slower."""


@dataclass(frozen=True)
class Latency:
    """Samples of both clocks, the reference kernel's in the same session, and whether the device kept its pace."""

    timing: Timing
    reference: Reference | None
    steadiness: Steadiness


@dataclass(frozen=True)
class Batches:
    """The two kinds of samples: ms of one inference, each the mean over a batch. Answers stay on the device."""

    batch: int
    """Inferences of a batch."""
    batched_ms: list[float]
    """Time in ms with one synchronisation at the end of each batch."""
    synced_ms: list[float]
    """Time in ms with a synchronisation after each inference."""
    launches: int | None
    """Kernels of an inference; None where they cannot be seen."""


@dataclass(frozen=True)
class Endurance:
    """State of the device around a sustained run. It makes no run wrong."""

    steadiness: Steadiness


class RunningFact(ABC):
    """A fact that grows while its probe runs: whatever ends the probe, the record keeps what was measured until then.

    A probe yields it before it begins to measure.
    """

    @property
    @abstractmethod
    def begun(self) -> bool:
        """Whether there is anything to keep."""

    @property
    @abstractmethod
    def so_far(self) -> object:
        """The fact as of now, as frozen data."""

    @abstractmethod
    def stop(self) -> None:
        """Note that a person stopped it."""


@dataclass
class Facts:
    """The facts of one program, at most one of each type, and the failure that ended it, if one did."""

    failure: Failure | None = None
    _by_type: dict[type, object] = field(default_factory=dict)

    def add(self, fact: T) -> T:
        """Add a fact and return it."""
        self._by_type[type(fact)] = fact
        return fact

    def get(self, kind: type[T]) -> T | None:
        """Return the fact of this type; None if it is not known."""
        fact = self._by_type.get(kind)
        return fact if isinstance(fact, kind) else None

    def __getitem__(self, kind: type[T]) -> T:
        """Return the fact of this type, which is known."""
        return cast("T", self._by_type[kind])

    @property
    def running(self) -> RunningFact | None:
        """The running fact that has begun; None without one."""
        return next((fact for fact in self if isinstance(fact, RunningFact) and fact.begun), None)

    def __iter__(self) -> Iterator[object]:
        """Return the facts, in the order in which they became known."""
        return iter(self._by_type.values())
