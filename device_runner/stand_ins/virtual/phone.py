"""The phone as a folder: `data`, `system`, `sys`, made from one small state.

`phone.json` is the one place where the phone's state stands; everything that imitates Android (`build.prop`, the pages
of `dumpsys`, the files under `/sys`) is rendered from it, so that no two of them disagree. Names say "virtual": the
phone never passes for a part that it is not. Form of the files: Qualcomm's kgsl_pwrctrl.c; AOSP's
ThermalManagerService and BatteryService.
"""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from device_runner.failures import RigFailure
from device_runner.files import write_whole
from device_runner.stand_ins.virtual import userland

STATE_JSON = "phone.json"
BUILD_PROP = "system/build.prop"
FAULTS_JSON = "system/etc/faults.json"
INJECTED_JSONL = "system/etc/injected.jsonl"
"""What was injected since the phone was started, a line each."""
DRIVER_LEFTOVERS = "data/local/tmp/.cache/pocl/uncached"
"""Folder in which PoCL compiles for a process that keeps no kernels. PoCL cleans up at exit; our process is killed."""
BOOT_ID = "boot_id"
"""Boot id, which the sandbox shows as the kernel's."""
BOOT_COMPLETED = "data/property/sys.boot_completed"
"""While it is there, the phone has not booted."""
KERNEL_NODES = ("sys/class/kgsl", "sys/class/thermal")
IMAGE = Path(__file__).parent / "image"
PROGRAMS = "system/bin"

GPU_ZONE = "gpuss-0"
_BATTERY_TECHNOLOGY = "virtual"
_editing = threading.Lock()
_ABIS = {"x86_64": "x86_64", "aarch64": "arm64-v8a"}


def _properties() -> dict[str, str]:
    abi = _ABIS.get(platform.machine(), platform.machine())
    return {
        "ro.product.name": "adreno_bench_virtual",
        "ro.product.model": "adreno-bench virtual",
        "ro.product.device": "virtual",
        "ro.product.manufacturer": "adreno-bench",
        "ro.product.cpu.abi": abi,
        "ro.product.cpu.abilist": abi,
        "ro.soc.manufacturer": "none",
        "ro.soc.model": "virtual",
        "ro.board.platform": "virtual",
        "ro.hardware": "virtual",
        "ro.build.version.release": "14",
        "ro.build.version.sdk": "34",
        "ro.build.fingerprint": "adreno-bench/virtual/virtual:14/1/1:user/release-keys",
        "ro.vendor.build.fingerprint": "adreno-bench/virtual/virtual:14/1/1:user/release-keys",
        "ro.build.type": "user",
        "ro.debuggable": "0",
        "sys.boot_completed": "1",
    }


@dataclass(frozen=True)
class Gpu:
    """The GPU as the kernel's driver would show it."""

    model: str = "virtual"
    levels_mhz: tuple[int, ...] = (800, 600, 400, 200)
    """Clocks of the power levels; level 0 is the fastest."""
    level: int = 0
    thermal_level: int = 0
    """Fastest level that the temperature allows: above 0 the GPU is throttled."""
    busy_percent: int = 0
    busy_us: tuple[int, ...] = (0, 0, 0, 0)
    """Time spent busy at each level since boot."""
    resets: int = 0


@dataclass(frozen=True)
class Battery:
    """The battery."""

    level_percent: int = 100
    temperature_dc: int = 250
    """Tenths of a degree Celsius."""
    charging: bool = False
    charge_uah: int = 3_000_000
    voltage_mv: int = 4_000


@dataclass(frozen=True)
class Chip:
    """What the kernel says of the chip that everything sits on."""

    machine: str = "virtual"
    family: str = "none"
    soc_id: str = "0"
    revision: str = "1.0"


@dataclass(frozen=True)
class Restrictions:
    """What a phone keeps from adb's shell, or is slow at. Looked at when the phone starts."""

    gpu_nodes: bool = False
    """Nodes of the GPU and thermal zones cannot be read (SELinux)."""
    settings: bool = False
    """`settings put|delete` and `input` end in a SecurityException, until somebody allows them on the phone."""
    su_dialog_s: int = 0
    """How long `su` waits for somebody who answers its dialog; 0 asks nobody."""
    dumpsys_s: float = 0.0
    """How long each page of `dumpsys` takes."""


@dataclass(frozen=True)
class PhoneState:
    """All that can change on the phone without a process doing it."""

    properties: Mapping[str, str] = field(default_factory=_properties)
    chip: Chip = Chip()
    cores_khz: Mapping[str, int] = field(default_factory=dict)
    """Fastest clock of each core by its number, where the phone shows any: only in a plain folder, as the sandbox has
    the host's cores."""
    gpu: Gpu = Gpu()
    battery: Battery = Battery()
    temperatures_mc: Mapping[str, int] = field(
        default_factory=lambda: {"cpu-0-0": 38_000, GPU_ZONE: 36_000, "skin-therm": 32_000}
    )
    """Thermal zones by type, in thousandths of a degree Celsius."""
    rooted: bool = False
    """Whether there is an `su`, and the GPU's nodes can be written; looked at when the phone starts."""
    thermal_status: int = 0
    """0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown."""
    restrictions: Restrictions = Restrictions()

    def changed(self, changes: Mapping[str, Any]) -> PhoneState:
        """Merge `changes` in, mapping by mapping. Raises RigFailure for an unknown key."""
        return _state(_merged(asdict(self), changes))


def prepare(home: Path) -> PhoneState:
    """Make or refresh the folder of a phone, keeping its state and its `/data`."""
    home.mkdir(parents=True, exist_ok=True)
    for name in ("data/local/tmp", "data/property", "system", "sys/devices/system"):
        (home / name).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home / DRIVER_LEFTOVERS, ignore_errors=True)
    state = load(home) if (home / STATE_JSON).exists() else PhoneState()
    _make_programs(home, state)
    home.chmod(0o700)  # adb gives pushed files to everybody; this keeps them ours
    for name in KERNEL_NODES if state.restrictions.gpu_nodes else ():
        shutil.rmtree(home / name, ignore_errors=True)
    save(home, state)
    for name, text in _tunables(state):
        write_whole(home / name, text)
    (home / INJECTED_JSONL).write_text("")
    (home / BOOT_COMPLETED).unlink(missing_ok=True)
    if not (home / BOOT_ID).exists():
        write_whole(home / BOOT_ID, f"{uuid4()}\n")
    return state


def _make_programs(home: Path, state: PhoneState) -> None:
    shutil.rmtree(home / PROGRAMS, ignore_errors=True)
    shutil.copytree(IMAGE, home, dirs_exist_ok=True)
    for script in (home / PROGRAMS).iterdir():
        script.chmod(0o755)
    userland.install(home / PROGRAMS, state.properties.get("ro.build.version.release", ""))


def edit(home: Path, change: Callable[[PhoneState], PhoneState]) -> PhoneState:
    """Change the state of the phone in this folder."""
    with _editing:
        state = change(load(home))
        save(home, state)
    return state


def show(home: Path, change: Callable[[PhoneState], PhoneState]) -> None:
    """Let the phone show something else than its state, until that is edited or shown again; the state stays.

    What somebody took away is not brought back.
    """
    with _editing:
        for name, text in _rendered(change(load(home))):
            with contextlib.suppress(FileNotFoundError):
                if (home / name).read_text() != text:
                    write_whole(home / name, text)


def reboot(home: Path) -> None:
    """Begin another boot: forget counters and what was written to the GPU's nodes."""

    def booted(state: PhoneState) -> PhoneState:
        return replace(state, gpu=replace(state.gpu, resets=0, busy_us=(0,) * len(state.gpu.levels_mhz)))

    for name, text in _tunables(edit(home, booted)):
        write_whole(home / name, text)
    (home / BOOT_ID).write_text(f"{uuid4()}\n")  # in place: the sandbox shows this very file


def load(home: Path) -> PhoneState:
    """Return the state of the phone in this folder. Raises RigFailure if the file is not one of ours."""
    path = home / STATE_JSON
    try:
        return _state(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise RigFailure(f"{path} cannot be read: {error}", hint="delete it to start with a fresh phone") from None


def save(home: Path, state: PhoneState) -> None:
    """Write the state and all that is rendered from it. Each file changes at once."""
    write_whole(home / STATE_JSON, json.dumps(asdict(state), indent=1) + "\n")
    for name, text in _rendered(state):
        write_whole(home / name, text)


def read_properties(root: Path) -> dict[str, str]:
    """Return the properties that a phone was built with."""
    pairs = (line.partition("=") for line in (root / BUILD_PROP).read_text().splitlines())
    return {key: value for key, _, value in pairs}


def _state(values: Mapping[str, Any]) -> PhoneState:
    try:
        gpu = Gpu(**values["gpu"])
        gpu = Gpu(**{**asdict(gpu), "levels_mhz": tuple(gpu.levels_mhz), "busy_us": tuple(gpu.busy_us)})
        chip, battery = Chip(**values.get("chip", {})), Battery(**values["battery"])
        restrictions = Restrictions(**values.get("restrictions", {}))
        return PhoneState(**{**values, "chip": chip, "gpu": gpu, "battery": battery, "restrictions": restrictions})
    except (KeyError, TypeError) as error:
        hint = f"see {PhoneState.__module__}.{PhoneState.__qualname__}"
        raise RigFailure(f"not the state of a virtual phone: {error}", hint=hint) from None


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(old.get(key), Mapping)
        merged[key] = _merged(old[key], value) if both else value
    return merged


def _rendered(state: PhoneState) -> Iterator[tuple[str, str]]:
    yield BUILD_PROP, "".join(f"{key}={value}\n" for key, value in state.properties.items())
    yield "system/etc/restrictions", _shell_variables(state)
    yield "system/etc/dumpsys/battery", _battery(state.battery)
    yield "system/etc/dumpsys/thermalservice", _thermalservice(state)
    for name, value in asdict(state.chip).items():
        yield f"sys/devices/soc0/{name}", f"{value}\n"
    for core, clock in state.cores_khz.items():
        yield f"sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq", f"{clock}\n"
    if state.restrictions.gpu_nodes:
        return
    for name, value in _kgsl(state.gpu, state.temperatures_mc.get(GPU_ZONE, 0)).items():
        yield f"sys/class/kgsl/kgsl-3d0/{name}", f"{value}\n"
    for index, (kind, temperature_mc) in enumerate(state.temperatures_mc.items()):
        yield f"sys/class/thermal/thermal_zone{index}/type", f"{kind}\n"
        yield f"sys/class/thermal/thermal_zone{index}/temp", f"{temperature_mc}\n"


def _shell_variables(state: PhoneState) -> str:
    """Return what the programs of the phone read with `.`."""
    its = state.restrictions
    values = {"rooted": int(state.rooted), "settings_denied": int(its.settings)}
    values |= {"su_dialog_s": its.su_dialog_s}
    return "".join(f"{name}={value}\n" for name, value in values.items()) + f"dumpsys_s={its.dumpsys_s:g}\n"


def _tunables(state: PhoneState) -> Iterator[tuple[str, str]]:
    """Nodes that root may write, as they are after a boot; `save` leaves them as they were written since."""
    if state.restrictions.gpu_nodes:
        return
    gpu = state.gpu
    values: dict[str, object] = {
        "bus_split": 1,
        "force_clk_on": 0,
        "idle_timer": 80,
        "max_pwrlevel": 0,
        "min_pwrlevel": len(gpu.levels_mhz) - 1,
        "devfreq/governor": "msm-adreno-tz",
        "devfreq/available_governors": "msm-adreno-tz performance powersave",
        "devfreq/min_freq": min(gpu.levels_mhz) * 1_000_000,
        "devfreq/max_freq": max(gpu.levels_mhz) * 1_000_000,
    }
    for name, value in values.items():
        yield f"sys/class/kgsl/kgsl-3d0/{name}", f"{value}\n"


def _kgsl(gpu: Gpu, temperature_mc: int) -> dict[str, object]:
    clock_mhz = gpu.levels_mhz[max(gpu.level, gpu.thermal_level)]
    return {
        "gpu_model": gpu.model,
        "gpuclk": clock_mhz * 1_000_000,
        "clock_mhz": clock_mhz,
        "max_clock_mhz": gpu.levels_mhz[gpu.thermal_level],
        "freq_table_mhz": " ".join(map(str, gpu.levels_mhz)),
        "gpu_available_frequencies": " ".join(str(mhz * 1_000_000) for mhz in gpu.levels_mhz),
        "gpu_clock_stats": " ".join(map(str, gpu.busy_us)),
        "gpu_busy_percentage": f"{gpu.busy_percent} %",
        "gpubusy": f"{gpu.busy_percent * 10_000:7d} {1_000_000:7d}",
        "num_pwrlevels": len(gpu.levels_mhz),
        "thermal_pwrlevel": gpu.thermal_level,
        "reset_count": gpu.resets,
        "temp": temperature_mc,
    }


def _battery(battery: Battery) -> str:
    charging = str(battery.charging).lower()
    return (
        "Current Battery Service state:\n"
        "  AC powered: false\n"
        f"  USB powered: {charging}\n"
        "  Wireless powered: false\n"
        f"  Charge counter: {battery.charge_uah}\n"
        f"  status: {2 if battery.charging else 3}\n"
        "  health: 2\n"
        "  present: true\n"
        f"  level: {battery.level_percent}\n"
        "  scale: 100\n"
        f"  voltage: {battery.voltage_mv}\n"
        f"  temperature: {battery.temperature_dc}\n"
        f"  technology: {_BATTERY_TECHNOLOGY}\n"
    )


def _thermalservice(state: PhoneState) -> str:
    zones = state.temperatures_mc
    sensors = [(0, "CPU", zones.get("cpu-0-0")), (1, "GPU", zones.get(GPU_ZONE)), (3, "SKIN", zones.get("skin-therm"))]
    lines = [
        f"\tTemperature{{mValue={value / 1000:.1f}, mType={kind}, mName={name}, mStatus={state.thermal_status}}}\n"
        for kind, name, value in sensors
        if value is not None
    ]
    return (
        "IsStatusOverride: false\n"
        f"Thermal Status: {state.thermal_status}\n"
        "Cached temperatures:\n"
        "HAL Ready: true\n"
        "Current temperatures from HAL:\n" + "".join(lines) + "Current cooling devices from HAL:\n"
        f"\tCoolingDevice{{mValue={state.gpu.thermal_level}, mType=3, mName=thermal-devfreq-0}}\n"
    )
