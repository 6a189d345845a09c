"""What is to be done for a case on a device, as plain data: what to build, how long to sample, when to refuse.

`harness.compile.artifacts.planner` makes plans; the runner carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from device_runner.device import Identity, ThermalLimits
from harness.base.case import Case, Precision

if TYPE_CHECKING:
    from harness.base.model import ProgramModel

SUSTAINED = "sustained"
"""The part of a record that a sustained run leaves (`Budget.sustain_s`). A tool makes and shows it."""


@dataclass(frozen=True)
class Job:
    """One thing to make in a worker. `key` says what it is, `title` is for people."""

    kind: str
    key: str
    title: str
    payload: dict[str, Any]
    otherwise: Job | None = None
    """What is made in its place where this one cannot be had: LLVM's answers instead of the truth."""


@dataclass(frozen=True)
class Budget:
    """How long one case may be sampled, and how much is enough."""

    seconds: float = 20.0
    samples: int = 30
    """Samples of wall time that are kept, where the time reaches for so many."""
    timeout_s: float = 600.0
    """After this long without an answer the program hangs."""
    quick: bool = False
    """Take the fewest samples, for a first look at an emulated device; overrides the other limits."""
    sustain_s: float = 0.0
    """If not 0, the case is kept running for so long instead of being sampled."""


@dataclass(frozen=True)
class Plan:
    """One case on one device."""

    case: Case
    compile: Job
    oracle: Job
    quirks: tuple[str, ...]
    relative_tolerance: float
    budget: Budget
    model_options: tuple[str, ...] = ()
    """Options of a command line that name its model or a suite file of an unusual name: `--model`, `net.onnx`."""
    changes: tuple[str, ...] = ()
    """What is changed in the model that was given before it is compiled, for a person."""
    thermal_limits: ThermalLimits = field(default_factory=ThermalLimits)
    range: Job | None = None
    """Measures how large the network's numbers become; only in half precision, whose range they may leave."""
    default_schedules: Job | None = None
    """Makes the same with TVM's own schedules, of a case with others: what those changed is seen by comparison."""
    schedules: str = ""
    """Hash of the file of schedules that it is built with; empty without one."""
    repeats: tuple[Job, ...] = ()
    """Ask the oracle about further draws of the inputs, on each of which an inference is judged."""
    reference: Job | None = None
    """Makes the reference kernel that is timed in the same session."""
    unsupported: str = ""
    """Why this device cannot run it, where its identity alone says so: then nothing is built for it."""
    program: ProgramModel | None = None
    """What only a tool runs; None of a network."""
    settings: Mapping[str, int] = field(default_factory=dict)
    """What a suite can pin and does not, as the baseline has it that the case is held to."""
    rounding_factor: float = 0.0
    """What the network's rounding is multiplied with, to be allowed as well; 0 where the tolerance holds as it is."""

    @property
    def witness(self) -> Job | None:
        """Asks LLVM behind TVM's importer: made where an answer is wrong, to know whose fault that is."""
        return self.oracle.otherwise

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All that has to be made before it can be run and timed."""
        if self.unsupported:
            return ()
        return (
            self.compile,
            self.oracle,
            *self.repeats,
            *(job for job in (self.default_schedules, self.range, self.reference) if job),
        )


def no_half(identity: Identity) -> str:
    """Return why a device cannot compute in half precision; empty if it can, or does not say."""
    if identity.fp16 is not False:
        return ""
    return f"{identity.gpu or identity.serial} cannot compute in half precision (no cl_khr_fp16)"


def no_double(identity: Identity, operators: Sequence[str]) -> str:
    """Return why a device cannot compute these operators in float64; empty if it can, or does not say."""
    if not operators or identity.fp64 is not False:
        return ""
    device, kinds = identity.gpu or identity.serial, ", ".join(operators)
    return f"{device} cannot compute in float64 (no cl_khr_fp64), and the model does ({kinds}): export it in float32"


def unsupported(case: Case, identity: Identity) -> str:
    """Return why a device cannot run a case, as far as its identity alone says so; empty if it may."""
    return no_half(identity) if case.precision is not Precision.FLOAT32 else ""
