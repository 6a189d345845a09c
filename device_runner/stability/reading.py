"""What a phone says of its heat and pace at one moment, and how to read it out of what it prints.

Everything here comes from a phone: it may be missing, denied, garbage, negative, or in another unit. What cannot be
read is None, never an error. Sources: Qualcomm's kgsl_pwrctrl.c for the GPU's nodes; AOSP ThermalManagerService.dump
and BatteryService.dumpInternal, of which tests/fixtures/android holds several releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

COLDEST_C, HOTTEST_C = -30.0, 150.0
"""A sensor that shows less or more does not measure a temperature."""

LEAST_MV, MOST_MV = 2_000, 20_000
"""Of a battery of one to four cells."""

TYPE_GPU = 1
TYPE_BATTERY = 2
COOLING_GPU = 3
"""Kinds of temperature and of cooling device (AOSP android.os.Temperature, android.os.CoolingDevice)."""

_CURRENT = "Current temperatures from HAL:"
_ITEM = re.compile(r"^\s*(Temperature|CoolingDevice)\{mValue=([^,}]*), mType=(\d+), mName=([^,}]*)", re.MULTILINE)

_CHARGING = 2
"""`status` of the battery service: BATTERY_STATUS_CHARGING."""


@dataclass(frozen=True)
class Reading:
    """What one look at a phone found. None means unknown."""

    gpu_c: float | None = None
    battery_c: float | None = None
    battery_percent: int | None = None
    charging: bool | None = None
    plugged: bool | None = None
    """Whether anything feeds it: then its battery says nothing of what it uses."""
    charge_uah: int | None = None
    """What is left in the battery, by the counter of its gauge."""
    voltage_mv: int | None = None
    thermal_status: int | None = None
    """Android's: 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown."""
    gpu_cooling: int | None = None
    """How far the framework's GPU cooling device is turned up; 0 is not at all."""
    thermal_pwrlevel: int | None = None
    """Fastest power level that the temperature allows; above 0 the GPU is throttled."""
    max_clock_mhz: int | None = None
    """Fastest clock that the temperature allows."""
    top_clock_mhz: int | None = None
    """Fastest clock that there is."""
    clock_mhz: int | None = None
    """The clock at this moment, which falls within milliseconds when there is nothing to do."""
    gpu_busy_percent: int | None = None
    """How busy the GPU was in the last second or so; 0 while it sleeps."""
    clocks_mhz: tuple[int, ...] | None = None
    """All clocks that there are, in the driver's order, which is also that of `clock_stats`."""
    clock_stats: tuple[int, ...] | None = None
    """Time at each power level since boot, as the driver counts it (most likely busy microseconds)."""
    reset_count: int | None = None
    """How often the GPU had to be reset since boot."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is known, for a record."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def unknown(self) -> list[str]:
        """Names of what is not known."""
        return [name for name, value in asdict(self).items() if value is None]


def reading(texts: Mapping[str, str]) -> Reading:
    """Parse the texts that `sources` reads, by the name of their source."""
    thermal = texts.get("thermalservice", "")
    battery = _battery(texts.get("battery", ""))
    hal = _temperatures(thermal)
    clocks = tuple(megahertz(str(clock)) for clock in numbers(texts.get("gpu_available_frequencies", "")) or ())
    level, scale = whole(battery.get("level", "")), whole(battery.get("scale", "100"))
    status = _natural(battery.get("status", ""))
    zones = [degrees for text in texts.get("zones", "").split() if (degrees := celsius(text)) is not None]
    return Reading(
        gpu_c=_first(celsius(texts.get("temp", "")), max(zones, default=None), hal.get(TYPE_GPU)),
        battery_c=_first(_tenths(battery.get("temperature", "")), hal.get(TYPE_BATTERY)),
        battery_percent=_percent(level, scale),
        charging=None if status is None else status == _CHARGING,
        plugged=_plugged(texts.get("battery", "")),
        charge_uah=_charge_uah(texts.get("battery", "")),
        voltage_mv=_voltage_mv(battery.get("voltage", "")),
        thermal_status=_thermal_status(thermal),
        gpu_cooling=_gpu_cooling(thermal),
        thermal_pwrlevel=_natural(texts.get("thermal_pwrlevel", "")),
        max_clock_mhz=megahertz(texts.get("max_clock_mhz", "")),
        top_clock_mhz=max(filter(None, clocks), default=None),
        clock_mhz=megahertz(texts.get("gpuclk", "")),
        gpu_busy_percent=_percentage(texts.get("gpu_busy_percentage", "")),
        clocks_mhz=tuple(filter(None, clocks)) if clocks and all(clocks) else None,
        clock_stats=numbers(texts.get("gpu_clock_stats", "")),
        reset_count=_natural(texts.get("reset_count", "")),
    )


def whole(text: str) -> int | None:
    """Return the one whole number that a text is."""
    return int(text) if re.fullmatch(r"\s*[+-]?\d{1,18}\s*", text, re.ASCII) else None


def numbers(text: str) -> tuple[int, ...] | None:
    """Whole numbers from 0, if the text is nothing else and there are some."""
    words = [_natural(word) for word in text.split()]
    values = tuple(number for number in words if number is not None)
    return values if values and len(values) == len(words) else None


def celsius(text: str) -> float | None:
    """Return a temperature in whatever unit the node has: thousandths, tenths, or whole degrees."""
    number = whole(text)
    if number is None:
        return None
    unit = next((unit for unit, least in ((1000, 1000), (10, HOTTEST_C + 1)) if abs(number) >= least), 1)
    return _plausible(number / unit)


def megahertz(text: str) -> int | None:
    """Return a clock in whatever unit the node has: Hz, kHz or MHz.

    Cut off, not rounded, as `max_clock_mhz` of the driver is (kgsl_pwrctrl.c): 652800000 Hz is 652 in either node.
    """
    number = _natural(text)
    if not number:
        return None
    unit = next((unit for unit in (1_000_000, 1_000) if number >= 10 * unit), 1)
    return number // unit


def status_is_faked(thermal: str) -> bool:
    """Return whether Android's status was overridden (`cmd thermalservice override-status`)."""
    return "IsStatusOverride: true" in thermal


def battery_is_faked(battery: str) -> bool:
    """Return whether somebody told Android what to say (`dumpsys battery set`)."""
    return "UPDATES STOPPED" in battery


def _thermal_status(thermal: str) -> int | None:
    match = re.search(r"^\s*Thermal Status: (\d)\s*$", thermal, re.MULTILINE)
    return int(match[1]) if match and not status_is_faked(thermal) else None


def _temperatures(thermal: str) -> dict[int, float]:
    """Return the hottest of each kind, of now and not of the cache. What reads exactly 0 is not fitted."""
    hottest: dict[int, float] = {}
    for kind, value, number, _ in _ITEM.findall(thermal.partition(_CURRENT)[2]):
        degrees = _plausible(_real(value))
        if kind == "Temperature" and degrees:
            hottest[int(number)] = max(degrees, hottest.get(int(number), COLDEST_C))
    return hottest


def _gpu_cooling(thermal: str) -> int | None:
    levels = [
        whole(value)
        for kind, value, number, _ in _ITEM.findall(thermal.partition(_CURRENT)[2])
        if kind == "CoolingDevice" and int(number) == COOLING_GPU
    ]
    return max((level for level in levels if level is not None), default=None)


def _battery(text: str) -> dict[str, str]:
    """Return the lines `key: value`, the first of each key; battery services of some makers add pages of their own."""
    pairs = re.findall(r"^ {2}([a-z]+): (\S+)\s*$", text, re.MULTILINE)
    return dict(reversed(pairs))


def _plugged(text: str) -> bool | None:
    feeds = re.findall(r"^ {2}[A-Za-z]+ powered: (true|false)\s*$", text, re.MULTILINE)
    return "true" in feeds if feeds else None


def _charge_uah(text: str) -> int | None:
    """Return what is left; a gauge that has no counter says 0 or less."""
    match = re.search(r"^ {2}Charge counter: (\S+)\s*$", text, re.MULTILINE)
    return (_natural(match[1]) or None) if match else None


def _voltage_mv(text: str) -> int | None:
    """In mV, which is what Android wants; some makers say uV."""
    number = _natural(text)
    voltage_mv = number // 1000 if number and number >= 10 * MOST_MV else number
    return voltage_mv if voltage_mv and LEAST_MV <= voltage_mv <= MOST_MV else None


def _percent(level: int | None, scale: int | None) -> int | None:
    if level is None or not scale or scale < 0 or not 0 <= level <= scale:
        return None
    return round(100 * level / scale)


def _percentage(text: str) -> int | None:
    number = _natural(text.removesuffix("%"))
    return number if number is not None and number <= 100 else None


def _tenths(text: str) -> float | None:
    number = whole(text)
    return None if number is None else _plausible(number / 10)


def _natural(text: str) -> int | None:
    number = whole(text)
    return number if number is not None and number >= 0 else None


def _real(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _plausible(degrees: float | None) -> float | None:
    return degrees if degrees is not None and COLDEST_C <= degrees <= HOTTEST_C else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
