"""A GPU of AMD or Intel, as Linux shows it in files.

Sources: kernel documentation, gpu/amdgpu/thermal (hwmon) and the ABI of i915 and xe (sysfs-driver-intel-i915-hwmon,
`gt/gt0/throttle_reason_*`). Written from these and tried on folders made after them, not on such a GPU.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from device_runner.stability.host_gpu.reading import GpuReading, Source

AMD, INTEL = "0x1002", "0x8086"
CARDS = Path("/sys/class/drm")
_INTEL_CLOCKS = ("gt/gt0/rps_act_freq_mhz", "device/tile0/gt0/freq0/act_freq", "gt_act_freq_mhz")
_INTEL_HEAT = ("gt/gt0/throttle_reason_thermal", "device/tile0/gt0/freq0/throttle/reason_thermal")
_INTEL_POWER = ("gt/gt0/throttle_reason_pl1", "device/tile0/gt0/freq0/throttle/reason_pl1")


@dataclass(frozen=True)
class Card:
    """One graphics card, by its folder."""

    folder: Path
    vendor: str

    def read(self) -> GpuReading:
        """Look once."""
        clock_hz, milli_c = self._sensor("freq1_input"), self._sensor("temp1_input")
        micro_w = self._sensor("power1_average")
        heat, power = (self._first(names) for names in (_INTEL_HEAT, _INTEL_POWER))
        return GpuReading(
            clock_mhz=self._first(_INTEL_CLOCKS) if self.vendor == INTEL else _scaled(clock_hz, 1_000_000),
            gpu_c=None if milli_c is None else milli_c / 1e3,
            power_w=None if micro_w is None else micro_w / 1e6,
            slowed=None if heat is None else (("heat",) if heat else ()),
            capped=None if power is None else bool(power),
        )

    def _first(self, names: tuple[str, ...]) -> int | None:
        return next((value for name in names if (value := _number(self.folder / name)) is not None), None)

    def _sensor(self, name: str) -> int | None:
        files = sorted((self.folder / "device").glob(f"hwmon/hwmon*/{name}"))
        return _number(files[0]) if files else None


def source(vendor: str, cards: Path = CARDS) -> Source | str:
    """This host's one card of a vendor, or why nothing can be read of it."""
    found = [card for card in sorted(cards.glob("card[0-9]*")) if _text(card / "device" / "vendor") == vendor]
    if len(found) != 1:
        return f"clock, heat and power: this host shows {len(found)} graphics cards of that vendor"
    return Card(found[0], vendor)


def _scaled(value: int | None, by: int) -> int | None:
    return None if value is None else value // by


def _number(file: Path) -> int | None:
    with suppress(ValueError):
        return int(_text(file))
    return None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
