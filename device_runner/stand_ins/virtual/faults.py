"""What can be made to go wrong on the virtual phone: data, and the JSON file that a person writes it to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from device_runner.failures import RigFailure
from device_runner.files import write_whole

FAULTS_VARIABLE = "ADRENO_BENCH_VIRTUAL_FAULTS"
"""Environment variable: a file of faults for it to begin with."""


class BadFaults(RigFailure):
    """What should be a file of faults is none."""

    outcome = "usage"


class NeedsStandIn(BadFaults):
    """A fault of our `tvm_rpc` and OpenCL runtime, on a virtual phone that runs TVM's own."""


class _Numbers:
    """Numbers that must not be negative, except those named here."""

    may_be_negative: ClassVar[tuple[str, ...]] = ("clock_jump_s", "seed")

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible value."""
        for name, value in vars(self).items():
            if isinstance(value, (int, float)) and value < 0 and name not in self.may_be_negative:
                raise ValueError(f"{name} should not be negative")


@dataclass(frozen=True)
class Kernels(_Numbers):
    """OpenCL kernels, by globs. A new session begins with what the file says then."""

    library: str = "*"
    """File name on the phone: what `adreno-bench` pushes is named by its sha256, so `3fa9*` is one artifact."""
    kernel: str = "*"
    """Name of the kernel. The reference kernel of each session is `spin_kernel`; TVM's own begin otherwise."""


@dataclass(frozen=True)
class SlowKernels(Kernels):
    """Kernels that last longer, in wall time and in the device's own time."""

    factor: float = 1.0
    least_s: float = 0.0
    """What a kernel lasts at least, before the factor: waiting is steadier than computing."""


@dataclass(frozen=True)
class FailingKernels(Kernels):
    """Kernels that the driver refuses, or whose work it ends."""

    may_be_negative: ClassVar[tuple[str, ...]] = ("code",)
    code: int = -5
    """Error of OpenCL (CL/cl.h): -5 is CL_OUT_OF_RESOURCES, as after a watchdog."""


STAND_INS = (
    "broken_runtime",
    "taken_ports",
    "crash_session_after_s",
    "crash_delay_s",
    "slow_kernels",
    "hang_kernels",
    "failing_kernels",
    "simulate_inference_s",
    "heat",
)
"""Faults that only our stand-ins for TVM's `tvm_rpc` and OpenCL runtime have."""

SHELL_ANSWERS = ("garbage", "truncated", "endless")
BROKEN_RUNTIMES = ("symbol", "handshake")
"""One that is not linked for want of a symbol, one that speaks another protocol."""
MISHAPS = ("unplug", "freeze", "kill_server", "reset_gpu", "overheat", "reboot")


@dataclass(frozen=True)
class Mishap(_Numbers):
    """Something that befalls the phone in the middle of a session, that is, of a connection to one of its ports."""

    what: str
    """One of `MISHAPS`."""
    after_s: float = 0.0
    """How long after the connection was made."""
    for_s: float = 1.0
    """How long it lasts, if it does. A reboot takes twice as long: first it is away, then it boots."""
    times: int = 1
    """How many sessions it befalls before it is over; counted anew when the file of faults is written."""

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown mishap."""
        super().__post_init__()
        if self.what not in MISHAPS:
            raise ValueError(f"there is no mishap {self.what!r}; known are {', '.join(MISHAPS)}")


@dataclass(frozen=True)
class Heat(_Numbers):
    """A GPU that gets warm when it works and is then slowed down (`virtual.heat`); by default as phones are."""

    speed: float = 1.0
    """How much faster than time it warms and cools: with 60, a second is a minute."""
    air_c: float = 30.0
    full_load_c: float = 105.0
    """What it would come to at full load and its fastest clock."""
    time_constant_s: float = 120.0
    """Time constant: after it, the temperature has gone two thirds of the way."""
    slow_down_c: float = 75.0
    """Hotter than that, it is slowed down by one power level after the other."""
    speed_up_c: float = 65.0
    """Cooler than that, it gets them back."""

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible value."""
        super().__post_init__()
        if not self.time_constant_s:
            raise ValueError("time_constant_s should not be 0")


@dataclass(frozen=True)
class Chance(_Numbers):
    """Commands, pushes and connections to ports are struck by chance; with the same seed, the same ones."""

    seed: int
    rate: float
    """Which part of the operations, from 0 to 1."""
    for_s: float = 1.0
    """How long a freeze lasts, and within how long of its beginning an operation is cut off or its server killed."""


@dataclass(frozen=True)
class Faults(_Numbers):
    """One set of faults; the default is a healthy phone."""

    drop_after_bytes: int | None = None
    """Cut the transport when one SEND has brought this many bytes."""
    full_after_bytes: int | None = None
    """Report ENOSPC when one SEND has brought this many bytes."""
    send_error: str = ""
    """Refuse every SEND with this text."""
    bytes_per_s: int | None = None
    """Speed of the link from the host, for data of SEND."""
    frozen: bool = False
    """Stop reading and answering, with connections left open: adb goes on saying `device`."""
    offline: bool = False
    """Cut every transport and refuse new ones, as if unplugged."""
    unauthorized: bool = False
    """Ask new transports for a key and never accept it."""
    features: tuple[str, ...] | None = None
    """Announce these features in place of all, to new transports; `("cmd",)` is a phone that knows only version 1."""
    crash_session_after_s: float | None = None
    """Kill the worker of `tvm_rpc` (SIGKILL) this long after its session began."""
    crash_delay_s: float = 0.0
    """How long the connection of a worker that crashed stays open, while Android's handler writes down the crash."""
    slow_kernels: tuple[SlowKernels, ...] = ()
    """Make these kernels last longer; the first that matches counts."""
    hang_kernels: Kernels | None = None
    """Never end these kernels; their process is deaf to SIGTERM."""
    read_only: bool = False
    """Storage refuses every change (EROFS): to pushes, and in the sandbox to commands that start from now on."""
    clock_jump_s: int = 0
    """How far the phone's clock is ahead of the host's."""
    latency_s: float = 0.0
    """How much later each packet of the host arrives, one after the other."""
    hollow: bool = False
    """End every connection after its handshake: `adb connect` says `connected to` of a phone that is not there."""
    shell_answers: str = ""
    """What each command answers in place of what it says: one of `SHELL_ANSWERS`."""
    taken_ports: tuple[int, ...] = ()
    """First and last of the ports that `tvm_rpc` finds taken when it binds them, though nobody answers there before."""
    broken_runtime: str = ""
    """What is wrong with `tvm_rpc`: one of `BROKEN_RUNTIMES`."""
    failing_kernels: tuple[FailingKernels, ...] = ()
    """Let these kernels fail; the first that matches counts."""
    simulate_inference_s: float | None = None
    """Let samples of an inference wait this long instead of computing; `emulated` says so."""
    driver_keeps_programs: bool = False
    """Let the OpenCL driver keep compiled kernels between processes, as no phone's does; from the phone's start on."""
    heat: Heat | None = None
    """Let the GPU get warm when inferences are timed, slow it down, and the inferences with it; `emulated` says so."""
    mishaps: tuple[Mishap, ...] = ()
    """What befalls the phone in the middle of sessions."""
    chance: Chance | None = None
    """What strikes operations by chance."""

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown name."""
        super().__post_init__()
        for name, choices in (("shell_answers", SHELL_ANSWERS), ("broken_runtime", BROKEN_RUNTIMES)):
            if getattr(self, name) not in ("", *choices):
                raise ValueError(f"{name} should be one of {', '.join(choices)}")
        if len(self.taken_ports) not in (0, 2):
            raise ValueError("taken_ports should be the first and the last")


def require_stand_ins_for(faults: Faults) -> None:
    """Raise NeedsStandIn for what does not befall a phone that runs TVM's own software."""
    needing = [name for name in STAND_INS if getattr(faults, name) != getattr(Faults(), name)]
    needing += ["reset_gpu" for mishap in faults.mishaps if mishap.what == "reset_gpu"]
    if needing:
        raise NeedsStandIn(
            f"{needing[0]} can only be injected into our own tvm_rpc and OpenCL runtime, and this phone runs TVM's",
            hint="`adreno-bench runtime list` shows what is kept for this host; `runtime remove` brings ours back",
        )


def write(path: Path, faults: Faults) -> None:
    """Make these the faults of the phone whose file this is. Atomic."""
    write_whole(path, json.dumps(asdict(faults), indent=1) + "\n")


def read(path: Path) -> Faults:
    """Return the faults of a file, a healthy phone without one. Raises BadFaults, naming what it does not know."""
    try:
        values = msgspec.json.decode(path.read_bytes())
        faults = msgspec.convert(values, Faults)
        if unknown := [*_unknown(values, msgspec.to_builtins(faults))]:
            raise ValueError(f"there is no {unknown[0]}")
        return faults
    except FileNotFoundError:
        return Faults()
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise BadFaults(
            f"{path} is no file of faults: {error}", hint="docs/explanation/virtual-device.md lists them"
        ) from None


def from_environment() -> Faults:
    """Return the faults of the file that `FAULTS_VARIABLE` names; a healthy phone if it names none.

    Raises BadFaults.
    """
    name = os.environ.get(FAULTS_VARIABLE)
    if name and not Path(name).exists():
        raise BadFaults(f"{FAULTS_VARIABLE} names {name}, which does not exist", hint="unset it for a healthy phone")
    return read(Path(name)) if name else Faults()


def _unknown(values: Any, fields: Any) -> Iterator[str]:
    """Yield the names of a file's values, such as `slow_kernels.pace`, that are no fields of what was made of them."""
    if isinstance(values, dict):
        for name, value in values.items():
            if name not in fields:
                yield name
            else:
                yield from (f"{name}.{inner}" for inner in _unknown(value, fields[name]))
    elif isinstance(values, list):
        yield from (inner for pair in zip(values, fields, strict=True) for inner in _unknown(*pair))
