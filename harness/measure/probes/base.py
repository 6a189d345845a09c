"""What a probe is, and what becomes known of one program, in the order in which it does.

`harness.measure.decide` says what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from device_runner.device import Array, Launch, Program, Session, Steadiness
    from device_runner.failures import Failure
    from harness.measure.probes.latency import Timing
    from harness.measure.probes.reference import Reference

Step = Callable[[str], None]
"""Shows what is being done."""


def no_step(_: str) -> None:
    """Show nothing."""


class Probe(Protocol):
    """Measures one thing of a program that has run and was right."""

    @property
    def step(self) -> str:
        """What a person sees meanwhile; empty for what takes no time."""

    @property
    def timed(self) -> bool:
        """Whether it takes times, which mean nothing where the path's library is emulated."""

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Yield facts as they become known, so that a failure leaves those before it. `facts` has the earlier ones.

        Raises what the program and the session raise. `harness.measure.decide` says whether a fact speaks against the
        case.
        """


T = TypeVar("T")


@dataclass(frozen=True)
class Schedules:
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
class HalfRange:
    """For half precision: why no answer can be right; empty if one can."""

    complaint: str


@dataclass(frozen=True)
class Loading:
    """What loading the program cost."""

    init_ms: float
    sent_bytes: int


@dataclass(frozen=True)
class FirstRun:
    """The first inference."""

    ms: float


@dataclass(frozen=True)
class Answer:
    """What the first inference came to."""

    outputs: Sequence[Array]


@dataclass(frozen=True)
class Judgement:
    """Who gave the answer that the program's is held to."""

    judge: str
    """Program and version: `onnxruntime 1.23.2`."""
    unchecked: str
    """Why nobody outside TVM could give it; empty if somebody did."""


@dataclass(frozen=True)
class Vacuity:
    """Why being right proves nothing, a line for each such output."""

    reasons: list[str]


@dataclass(frozen=True)
class Latency:
    """Samples of both clocks, the reference kernel's in the same session, and whether the device kept its pace."""

    timing: Timing
    reference: Reference | None
    steadiness: Steadiness


@dataclass(frozen=True)
class Endurance:
    """How the device was around a sustained run: that heat slowed it down is what was to be found out."""

    steadiness: Steadiness


@dataclass(frozen=True)
class Launches:
    """The kernels of each inference that was watched, in the order in which they were launched."""

    inferences: Sequence[Sequence[Launch]]


@dataclass
class Facts:
    """The facts of one program, at most one of each type, and the failure that ended it, if one did."""

    failure: Failure | None = None
    _by_type: dict[type, object] = field(default_factory=dict)

    def add(self, fact: T) -> T:
        """Add a fact, and hand it on."""
        self._by_type[type(fact)] = fact
        return fact

    def get(self, kind: type[T]) -> T | None:
        """Return the fact of this type; None if it is not known."""
        fact = self._by_type.get(kind)
        return fact if isinstance(fact, kind) else None

    def __iter__(self) -> Iterator[object]:
        """Return the facts, in the order in which they became known."""
        return iter(self._by_type.values())
