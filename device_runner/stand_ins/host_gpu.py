"""A GPU of this host: what its driver says of it at one moment, and whether it held its pace. It is never set.

NVIDIA's driver is asked by its library, AMD's and Intel's by files.
Sources: NVIDIA, NVML API Reference, "Device Queries" and "NvmlClocksEventReasons" (Python: package `nvidia-ml-py`);
kernel documentation, gpu/amdgpu/thermal (hwmon), and the ABI of i915 and xe (sysfs-driver-intel-i915-hwmon,
`gt/gt0/throttle_reason_*`). What concerns AMD and Intel is written from these, and tried on folders made after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from device_runner.device import Pulse, Steadiness, T

SM_CLOCK, GPU_TEMPERATURE, THERMAL_POLICY = 1, 0, 1
POWER_CAP = 0x4
SLOWED_BY = {0x8: "the board", 0x20: "heat (driver)", 0x40: "heat (hardware)", 0x80: "a power brake"}
"""Reasons for a lower clock that are nobody's choice."""

AMD, INTEL = "0x1002", "0x8086"
CARDS = Path("/sys/class/drm")
VENDOR = "device/vendor"
_INTEL_CLOCKS = ("gt/gt0/rps_act_freq_mhz", "device/tile0/gt0/freq0/act_freq", "gt_act_freq_mhz")
_INTEL_HEAT = ("gt/gt0/throttle_reason_thermal", "device/tile0/gt0/freq0/throttle/reason_thermal")
_INTEL_POWER = ("gt/gt0/throttle_reason_pl1", "device/tile0/gt0/freq0/throttle/reason_pl1")
_SENSOR = "device/hwmon/hwmon*"
_CLOCK, _HEAT, _POWER = (f"{_SENSOR}/{name}" for name in ("freq1_input", "temp1_input", "power1_average"))
CARD_FILES = (VENDOR, *_INTEL_CLOCKS, *_INTEL_HEAT, *_INTEL_POWER, _CLOCK, _HEAT, _POWER)
"""What is read of a card, as patterns below its folder."""


@dataclass(frozen=True)
class GpuReading:
    """One look. None means that the driver does not say."""

    clock_mhz: int | None = None
    gpu_c: float | None = None
    power_w: float | None = None
    slowed: tuple[str, ...] | None = None
    """What slows the GPU down right now against its will: heat, a power brake. Empty: nothing does."""
    slowed_ms: float | None = None
    """How long heat has slowed it down since its driver was loaded."""
    capped: bool | None = None
    """Whether its power limit holds the clock down, which a GPU at full load may be for ever."""

    @property
    def facts(self) -> dict[str, Any]:
        """What it says, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


ReadingSource = Callable[[], GpuReading]
"""Looks once; takes milliseconds and raises nothing."""


def nvidia_reading(values: Mapping[str, int]) -> GpuReading:
    """Build a reading from NVML's numbers, under the names of the bundle runner (`runner/src/gpus.c`)."""
    power_mw, reasons, slowed_ns = (values.get(name) for name in ("power_mw", "reasons", "slowed_ns"))
    return GpuReading(
        clock_mhz=values.get("clock_mhz"),
        gpu_c=values.get("gpu_c"),
        power_w=None if power_mw is None else power_mw / 1e3,
        slowed=None if reasons is None else tuple(why for bit, why in SLOWED_BY.items() if reasons & bit),
        slowed_ms=None if slowed_ns is None else slowed_ns / 1e6,
        capped=None if reasons is None else bool(reasons & POWER_CAP),
    )


def nvml_reading(library: Any, handle: Any) -> GpuReading:
    """Look once at a GPU of NVIDIA's management library."""

    def ask(function: str, *more: int) -> Any:
        try:
            return getattr(library, function)(handle, *more)
        except (AttributeError, library.NVMLError):  # of an older library, or a GPU that does not tell
            return None

    violation = ask("nvmlDeviceGetViolationStatus", THERMAL_POLICY)
    values = {
        "clock_mhz": ask("nvmlDeviceGetClockInfo", SM_CLOCK),
        "gpu_c": ask("nvmlDeviceGetTemperature", GPU_TEMPERATURE),
        "power_mw": ask("nvmlDeviceGetPowerUsage"),
        "reasons": ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
        "slowed_ns": None if violation is None else violation.violationTime,
    }
    return nvidia_reading({name: value for name, value in values.items() if value is not None})


def nvidia_source(gpu: str) -> ReadingSource | str:
    """Return the GPU that OpenCL calls so, or why nothing can be read of it."""
    try:
        library = import_module("pynvml")
    except ImportError:
        return "clock, heat and power: nvidia-ml-py is not installed (pip install 'adreno-bench[nvidia]')"
    try:
        library.nvmlInit()
        handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
        matches = [handle for handle in handles if _decoded(library.nvmlDeviceGetName(handle)) == gpu]
    except library.NVMLError as error:
        return f"clock, heat and power: NVML says {error}"
    return partial(nvml_reading, library, matches[0]) if len(matches) == 1 else _ambiguous(gpu, len(matches))


def _ambiguous(gpu: str, count: int) -> str:
    return f"clock, heat and power: this host has {count} GPUs that are called {gpu}"


def _decoded(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def card_reading(texts: Mapping[str, str]) -> GpuReading:
    """Build a reading from a card's files, by their names in its folder."""

    def first(*patterns: str) -> int | None:
        named = (texts[name] for pattern in patterns for name in sorted(texts) if fnmatchcase(name, pattern))
        return next((number for text in named if (number := _whole(text)) is not None), None)

    clock_hz, milli_c, micro_w = first(_CLOCK), first(_HEAT), first(_POWER)
    heat, power = first(*_INTEL_HEAT), first(*_INTEL_POWER)
    clock_mhz = None if clock_hz is None else clock_hz // 1_000_000
    return GpuReading(
        clock_mhz=first(*_INTEL_CLOCKS) if texts.get(VENDOR) == INTEL else clock_mhz,
        gpu_c=None if milli_c is None else milli_c / 1e3,
        power_w=None if micro_w is None else micro_w / 1e6,
        slowed=None if heat is None else (("heat",) if heat else ()),
        capped=None if power is None else bool(power),
    )


def _texts_of(card: Path) -> dict[str, str]:
    """Read the files of a card's folder, by their names in it."""
    texts = {}
    for file in (file for pattern in CARD_FILES for file in sorted(card.glob(pattern))):
        with suppress(OSError):
            texts[file.relative_to(card).as_posix()] = file.read_text(encoding="ascii", errors="replace").strip()
    return texts


def card_source(vendor: str, cards: Path = CARDS) -> ReadingSource | str:
    """Return this host's one card of a vendor, or why nothing can be read from it."""
    matches = [card for card in sorted(cards.glob("card[0-9]*")) if _texts_of(card).get(VENDOR) == vendor]
    return (lambda: card_reading(_texts_of(matches[0]))) if len(matches) == 1 else _cards(len(matches))


def _cards(count: int) -> str:
    return f"clock, heat and power: this host shows {count} graphics cards of that vendor"


def _whole(text: str) -> int | None:
    with suppress(ValueError):
        return int(text)
    return None


_AMD = re.compile(r"gfx\d|Radeon")
_INTEL = re.compile(r"Intel.*(Graphics|Arc|Iris)|^(Arc|Iris)\b")


def source(gpu: str) -> ReadingSource | str:
    """Return what reads the clock and heat of this OpenCL device, or why nothing does.

    An empty text for what is no GPU of these makers.
    """
    if "NVIDIA" in gpu:
        return nvidia_source(gpu)
    vendor = _vendor(gpu)
    return card_source(vendor) if vendor else ""


def _vendor(gpu: str) -> str:
    """PCI vendor of a graphics card with readable files; empty for another device."""
    if _AMD.search(gpu):
        return AMD
    return INTEL if _INTEL.search(gpu) else ""


CARDS_SCRIPT = f"""
for card in {CARDS}/card[0-9]*; do
  for file in {" ".join(f'"$card"/{pattern}' for pattern in CARD_FILES)}; do
    value=; {{ read -r value <"$file"; }} 2>/dev/null && echo "${{file#{CARDS}/}} $value"
  done
done
"""
"""Prints the same of every card: the path of each file, and its first line."""


def card_report(printed: str, vendor: str) -> GpuReading | str:
    """Return the reading of the one card of a vendor in what `CARDS_SCRIPT` printed, or why there is none."""
    cards: dict[str, dict[str, str]] = {}
    for line in printed.splitlines():
        path, _, value = line.partition(" ")
        card, _, name = path.partition("/")
        cards.setdefault(card, {})[name] = value.strip()
    matches: Sequence[Mapping[str, str]] = [texts for texts in cards.values() if texts.get(VENDOR) == vendor]
    return card_reading(matches[0]) if len(matches) == 1 else _cards(len(matches))


def reading_in(texts: Mapping[str, str], gpu: str) -> GpuReading | str:
    """Return the reading in what a bundle's look printed, or why there is none."""
    if "NVIDIA" in gpu:
        return nvidia_report(texts.get("gpus", ""), gpu)
    vendor = _vendor(gpu)
    return card_report(texts.get("cards", ""), vendor) if vendor else ""


def nvidia_report(printed: str, gpu: str) -> GpuReading | str:
    """Return the reading of a GPU in what the runner of bundles printed, or why there is none."""
    blocks = [block.splitlines() for block in f"\n{printed}".split("\ngpu ")[1:]]
    matches = [lines[1:] for lines in blocks if lines[0].strip() == gpu]
    if len(matches) != 1:
        return _ambiguous(gpu, len(matches))
    pairs = (line.split() for line in matches[0])
    return nvidia_reading({name: int(value) for name, value in pairs})


def pace_between(before: Mapping[str, str], after: Mapping[str, str], gpu: str) -> Steadiness | str:
    """Return how a GPU held its pace between two looks of a bundle's runner, or why that is not known."""
    first, last = reading_in(before, gpu), reading_in(after, gpu)
    if isinstance(first, str) or isinstance(last, str):
        return first if isinstance(first, str) else str(last)
    return judge(first, last)


def steadily(work: Callable[[], T], source: ReadingSource | str) -> tuple[T, Steadiness]:
    """Do `work`, and say whether the GPU kept its pace; `source` is why nothing can be read if it is a text."""
    if isinstance(source, str):
        return work(), Steadiness(facts={"unavailable": [source]} if source else {})
    before = source()
    done = work()
    return done, judge(before, source())


def judge(before: GpuReading, after: GpuReading) -> Steadiness:
    """Compare what a GPU said before and after it was measured."""
    reasons = [f"{what} slowed the GPU down" for what in _slowed(before, after)]
    if before.slowed_ms is not None and after.slowed_ms is not None and after.slowed_ms > before.slowed_ms:
        reasons.append(f"heat slowed the GPU down for {after.slowed_ms - before.slowed_ms:.0f} ms meanwhile")
    notes = ["the power limit held the clock down"] if before.capped or after.capped else []
    facts = {"before": before.facts, "after": after.facts, **({"notes": notes} if notes else {})}
    return Steadiness(throttled=bool(reasons), why="; ".join(reasons), facts=facts)


def _slowed(*readings: GpuReading) -> list[str]:
    return list(dict.fromkeys(what for reading in readings for what in reading.slowed or ()))


def pulses(source: ReadingSource | str) -> Callable[[], Pulse]:
    """Return what looks at the GPU whenever it is called."""

    def pulse() -> Pulse:
        now = GpuReading() if isinstance(source, str) else source()
        return Pulse(
            clock_mhz=now.clock_mhz,
            gpu_c=now.gpu_c,
            shows_heat=now.slowed is not None,
            slowed="; ".join(now.slowed or ()),
        )

    return pulse
