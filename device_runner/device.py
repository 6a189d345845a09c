"""The vocabulary of devices: who they are, what runs on them, and what a session offers.

`harness.measure.runner` sees only the protocols of this file, so a phone, the virtual device and an OpenCL device of
this host are interchangeable, and a test can hand it a device made of plain Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from device_runner.lease import Holder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")
Array: TypeAlias = "npt.NDArray[np.generic]"


ADRENO_LOCAL_BYTES = 32 << 10
"""Local memory of a work-group on every Adreno (CL_DEVICE_LOCAL_MEM_SIZE), for a device that does not say."""


@dataclass(frozen=True)
class Identity:
    """Who a device is. What makes two runs comparable is its `key`: a new one starts a new series.

    Empty text means that the device does not say. `emulated` names what is not real on this device.
    """

    kind: str
    """`phone`, `virtual` or `local`."""
    serial: str
    soc: str = ""
    gpu: str = ""
    driver: str = ""
    """OpenCL platform and driver version."""
    clml: str = ""
    """CLML interface version, empty without `cl_qcom_ml_ops`."""
    rom: str = ""
    """ROM fingerprint (`ro.build.fingerprint`)."""
    abi: str = ""
    """`ro.product.cpu.abi`: `arm64-v8a`, `x86_64`."""
    extensions: tuple[str, ...] = ()
    """OpenCL device extensions, sorted. There is no device without any: empty means that it does not say."""
    image2d_max_width: int = 16384
    image2d_max_height: int = 16384
    image_max_array_layers: int = 2048
    memory_bytes: int = 0
    """Memory of its OpenCL device; 0 if unknown. Like the next two, not part of the key."""
    work_group_items: int = 0
    """The largest work-group of its OpenCL device; 0 if it does not say."""
    local_memory_bytes: int = 0
    """Local memory of a work-group; 0 if unknown."""
    allocation_bytes: int = 0
    """The largest buffer of its OpenCL device (CL_DEVICE_MAX_MEM_ALLOC_SIZE); 0 if unknown. Not part of the key."""
    emulated: tuple[str, ...] = ()
    opencl_told_by: str = ""
    """What the fields of OpenCL rest on: `probe`, or `tvm`, whose device attributes tell less; empty if not known."""
    opencl_libraries: str = ""
    """Digest of the files that OpenCL came from, driver included as far as it shows; empty if they cannot be read."""
    clml_libraries: str = ""
    """Digest of the files that OpenCL ML came from, where it has files of its own."""

    vendor: str = ""
    """Fingerprint of the build that the drivers came with (`ro.vendor.build.fingerprint`)."""
    chip: str = ""
    """What `/sys/devices/soc0` says: machine, family, id and revision."""
    board: str = ""
    """Model of the device tree: what a Linux board is called."""
    runtime: str = ""
    """Hash of the runtime that was brought to the device (`adreno-bench runtime list`). Not part of the key: TVM's
    runtime is under test like its compiler, so a rebuilt one is compared with the one before it, and named."""

    @property
    def key(self) -> str:
        """Short stable text of what makes runs comparable: what the device is, and which one of its kind.

        What is not known changes nothing, so that a series goes on when a device is asked for more than before.
        """
        parts = [self.kind, self.soc, self.gpu, self.driver, self.clml, self.rom, self.abi, *self.emulated]
        parts += [f"{name}={value}" for name, value in self._also_in_key.items() if value]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
        name = "".join(c if c.isalnum() else "_" for c in (self.gpu or self.soc or self.serial))
        return "-".join(filter(None, (self.kind, name, digest, self.handset)))

    @property
    def handset(self) -> str:
        """Tells a phone from others of its model, which differ by more than most changes of a compiler.

        Five digits of the serial's hash: enough for the phones of a lab, and too few to find the serial by. Empty for
        what is no handset: all virtual devices are one device, and so is a host.
        """
        return hashlib.sha256(self.serial.encode()).hexdigest()[:5] if self.kind == "phone" and self.serial else ""

    @property
    def _also_in_key(self) -> Mapping[str, str]:
        """What came with the device, by name. A phone's ROM and handset stand for its chip and board as well."""
        return {
            "opencl": self.opencl_libraries,
            "clml": self.clml_libraries,
            "vendor": "" if self.vendor == self.rom else self.vendor,
            "chip": "" if self.rom else self.chip,
            "board": "" if self.rom else self.board,
        }

    @property
    def fp16(self) -> bool | None:
        """Whether kernels may use `half` arithmetic (extension `cl_khr_fp16`); None if the device does not say."""
        return "cl_khr_fp16" in self.extensions if self.extensions else None

    @property
    def fp64(self) -> bool | None:
        """Whether kernels may use `double` (extension `cl_khr_fp64`, which no Adreno has); None if it does not say."""
        return "cl_khr_fp64" in self.extensions if self.extensions else None


@dataclass(frozen=True)
class Loadable:
    """One compiled library, as a device needs to know it.

    The library holds a Relax VM executable with two entries of the same signature: `entry` leaves its output on the
    device, `host_entry` also copies it to host memory, so that its wall time is the time to an answer.
    """

    library: Path
    sha256: str
    vdevices: int
    """Number of virtual devices the VM is initialised with (one OpenCL device, several memory scopes)."""
    device: str = "opencl"
    """TVM's name of the device that the kernels run on; `cpu` for a library of host code alone."""
    entry: str = "main"
    host_entry: str = "main_to_host"


Toggles = Mapping[str, str]
"""Environment of the runtime's process. CLML reads its toggles once per process, so a new set is a new process."""


@dataclass(frozen=True)
class ShellResult:
    """What a command on the device said."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class PushResult:
    """Path of a file on the device, and the cost: `sent_bytes` is 0 if it was already there."""

    path: str
    sent_bytes: int


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel. Times in ns, by the device's own clock; only differences mean anything."""

    kernel: str
    threads: tuple[int, int, int]
    """Work-items in each dimension."""
    group: tuple[int, int, int]
    """Work-items of one work-group; zeros if the driver chose."""
    queued_ns: int
    submit_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class ThermalLimits:
    """How cool, idle and charged a device has to be before it is measured, and how long it may take to get there.

    Temperatures in degrees Celsius. The defaults are what a phone on a desk reaches between two cases.
    """

    gpu_c: float = 45.0
    battery_c: float = 40.0
    thermal_status: int = 0
    """Android's thermal status: 0 none, 1 light, 2 moderate, 3 severe."""
    gpu_busy_percent: int = 10
    """Most load of the GPU by others, in the last second."""
    battery_percent: int = 20
    """Least charge of the battery to measure: many phones slow down below it, and measuring would empty it."""
    wait_s: float = 120.0
    """After this long it is measured as hot as it is, and the record says `hot start`."""


@dataclass(frozen=True)
class Steadiness:
    """Whether a device held its pace while it was measured. Empty for a device that does not show it."""

    throttled: bool = False
    why: str = ""
    """One line, for a person; empty unless `throttled`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was read before and after, what was set, and what could not be set; ready for JSON."""


@dataclass(frozen=True)
class Pulse:
    """State of the device at one moment of a sustained run. None means unknown."""

    clock_mhz: int | None = None
    """Mean clock of the GPU while it was busy since the look before; if nothing counts that, its clock right now."""
    gpu_c: float | None = None
    power_level: int | None = None
    """The fastest that heat allows: 0 is the fastest that there is."""
    thermal_status: int | None = None
    """Android's, as in `ThermalLimits`."""
    battery_percent: int | None = None
    battery_c: float | None = None
    charge_uah: int | None = None
    """What is left in the battery; None also while anything else feeds the device."""
    voltage_mv: int | None = None
    """Of the battery, as `charge_uah`."""
    shows_heat: bool = False
    """Whether it would be seen if heat slowed the device down."""
    slowed: str = ""
    """The signs of that, in one line; empty if there are none."""


class Program(Protocol):
    """A library loaded in a session."""

    @property
    def init_ms(self) -> float:
        """Loading and initialising, before any inference."""

    @property
    def pushed(self) -> PushResult:
        """Path of the library on the device."""

    @property
    def inferences(self) -> int:
        """Number of inferences until now."""

    def run(self, inputs: Sequence[Array], *, timeout_s: float) -> tuple[list[Array], float]:
        """Run once on `inputs` and return outputs and elapsed ms.

        Raises `PathFailure` (kernel build, runtime error, crash, hang) or `DeviceFailure`.
        """

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """`repeat` samples of one inference each, to the answer in the device's host memory, by the device's clock."""

    def timed_answer(self, *, timeout_s: float) -> list[Array]:
        """Return the outputs of the last inference that `wall_ms` timed, without another one."""

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """`repeat` samples of one inference each, as the sum of kernel times on a profiling queue."""

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        """Return wall times in ms of one inference, in batches and one by one.

        `repeat` batches of `size` are enqueued with one synchronisation at the end, in turns with as many with a
        synchronisation after each inference. Answers stay on the device.

        Raises `RigFailure` where that cannot be timed.
        """

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of each of `repeat` inferences on the last inputs, in the order of launch.

        Raises `RigFailure` where launches cannot be watched.
        """

    def binaries(self, *, timeout_s: float) -> bytes:
        """Return the OpenCL programs as the device compiled them (TVM: `opencl.GetPreCompiledPrograms`)."""

    def use_binaries(self, blob: bytes, *, timeout_s: float) -> None:
        """Take programs from `binaries` instead of compiling them; before the first run."""


@dataclass(frozen=True)
class PeakMemory:
    """The most memory that a process on the device has had, in bytes. None is not known."""

    process_bytes: int | None = None
    """Of its own, as the kernel counts it (VmHWM)."""
    gpu_bytes: int | None = None
    """Of the GPU, as its driver counts it (kgsl)."""


class Session(Protocol):
    """A leased device, one server process with one set of toggles, one RPC connection."""

    @property
    def toggles(self) -> Toggles:
        """The environment that the server process was started with."""

    def load(self, loadable: Loadable, *, timeout_s: float) -> Program:
        """Push (by hash), load and initialise a library."""

    def call(self, function: str, *, timeout_s: float) -> Any:
        """Return what a global function of the server's process returns; None if it has no such function."""

    def program_counts(self, *, timeout_s: float) -> Mapping[str, int]:
        """Return how many OpenCL programs this process made: `programs_from_source`, `programs_from_binary`.

        Counted since the first library with kernels was loaded; empty where they cannot be counted.
        """

    def peak_memory(self, *, timeout_s: float) -> PeakMemory:
        """Return what this process has had at most until now."""

    def download(self, path: str, *, timeout_s: float) -> bytes:
        """Content of a file on the device, by its absolute path."""

    def log(self) -> str:
        """Return the server's log so far (bounded)."""


class Permission(str, Enum):
    """What is done to bring a device back only if a person allows it."""

    USB_POWER = "usb-power"
    REBOOT = "reboot"


@dataclass(frozen=True)
class Rung:
    """One way to bring a device back."""

    name: str
    deadline_s: float
    act: Callable[[float], None]
    """Takes at most so many seconds. Returns if the device answers then; raises `Failure` or OSError if not."""
    needs: Permission | None = None
    """What a person has to allow first, if it does more than to look and to connect anew."""


class Device(Protocol):
    """A device that runs artifacts."""

    @property
    def name(self) -> str:
        """What a person types after `--device`."""

    @property
    def identity(self) -> Identity:
        """Identity of the device; asked once, then kept."""

    @property
    def rungs(self) -> Sequence[Rung]:
        """What may bring it back when it is lost, gentlest first; the first only looks whether it answers."""

    def session(self, toggles: Toggles, *, timeout_s: float) -> AbstractContextManager[Session]:
        """Return a fresh server process with these toggles, connected. Ends for certain when the context ends."""

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        """Bring a file to the device under its hash; costs one round trip if it is there."""

    def prune(self, older_than_s: float) -> int:
        """Remove files that were pushed longer ago than that; returns how many."""

    def scratch(self, name: str) -> AbstractContextManager[str]:
        """Return an unused path in an existing folder of the device.

        Whatever is there when the context ends is removed.
        """

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """Do `work` on a device that is cool and held at a steady pace as far as it allows, and say whether it kept it.

        Raises what `work` raises, or `DeviceFailure`.
        """

    def pulses(self, limits: ThermalLimits) -> Callable[[], Pulse]:
        """Return what looks at the device whenever it is called, in one round trip; it raises `DeviceFailure`."""


@dataclass(frozen=True)
class DeviceEntry:
    """One line of `adreno-bench devices`."""

    name: str
    kind: str
    state: str
    """`ready`, `busy`, or adb's word for a device that is not ready: `offline`, `unauthorized`."""
    detail: Mapping[str, str] = field(default_factory=dict)
    owner: Holder | None = None
    """The process that uses it; None if it is free."""
