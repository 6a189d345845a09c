"""The GPU's clock, held by root through the nodes of Qualcomm's kernel driver.

Held is not the highest clock but the lowest that is at least half of it, because that one lasts (androidx benchmark's
lockClocks.sh does the same). Sources: kgsl_pwrctrl.c and kgsl_pwrscale.c for the nodes; androidx lockClocks.sh and
IREE's set_adreno_gpu_scaling_policy.sh for the order. Thermal daemons are left alone: they keep the phone whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from device_runner.stability.knobs.base import Knob, PhoneAccess
from device_runner.transport.quoting import quoted

CRASH_WHEN_LOCKED = ("walleye", "taimen")
"""Pixel 2 and 2 XL (androidx lockClocks.sh)."""

SUSTAINABLE = 0.5

IDLE_TIMER_MS = 10_000
"""Longer than any pause between two inferences; the driver's default is 80."""


@dataclass(frozen=True)
class GpuKnob(Knob):
    """What the nodes have in common."""

    needs_root = True

    def why_not(self, phone: PhoneAccess) -> str:
        """Refuse Pixel 2 and 2 XL, which crash."""
        return "this phone crashes when its GPU clock is held" if phone.product in CRASH_WHEN_LOCKED else ""


@dataclass(frozen=True)
class SysfsNode(GpuKnob):
    """A file with one word in it."""

    path: str = ""
    """Path below the driver's folder."""
    target: str = ""

    def read(self, phone: PhoneAccess) -> str:
        """Print the file."""
        return quoted("cat", f"{phone.gpu}/{self.path}")

    def value(self, printed: str) -> str:
        """Return the one word that the file holds; anything longer is a complaint."""
        words = printed.split()
        return words[0] if len(words) == 1 else ""

    def wanted(self, printed: str) -> str:
        """Return the target, where the file is."""
        return self.target if self.value(printed) else ""

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Write the file."""
        return f"{quoted('echo', value)} >{quoted(f'{phone.gpu}/{self.path}')}"


@dataclass(frozen=True)
class Governor(SysfsNode):
    """What chooses the clock. Some drivers only have `msm-adreno-tz`; then the frequencies alone must do."""

    def read(self, phone: PhoneAccess) -> str:
        """Print it, and those that there are."""
        return f"{quoted('cd', f'{phone.gpu}/devfreq')} && cat governor && echo of && cat available_governors"

    def value(self, printed: str) -> str:
        """Return the word before the list."""
        return super().value(printed.partition("\nof")[0])

    def wanted(self, printed: str) -> str:
        """Return `performance`, if it is one of them."""
        return self.target if self.target in printed.partition("\nof")[2].split() else ""


@dataclass(frozen=True)
class Range(GpuKnob):
    """Two files, the ends of a range, both set to the sustainable clock. The value is both, `LOW HIGH`.

    The driver refuses ends that cross, and which one has to go first depends on where they are: each is written twice.
    """

    files: tuple[str, str] = ("", "")
    by_index: bool = False
    """The files take the number of a power level, 0 the fastest, instead of Hz."""

    def read(self, phone: PhoneAccess) -> str:
        """Print both ends, and the clocks that there are."""
        low, high = self.files
        return f"{quoted('cd', phone.gpu)} && cat {low} {high} && echo of && cat gpu_available_frequencies"

    def value(self, printed: str) -> str:
        """Both ends."""
        ends = printed.partition("\nof")[0].split()
        return " ".join(ends) if len(ends) == 2 and all(end.isdigit() for end in ends) else ""

    def wanted(self, printed: str) -> str:
        """Return the sustainable clock at both ends."""
        clocks = available(printed.partition("\nof")[2])
        if not clocks or not self.value(printed):
            return ""
        clock = sustainable(clocks)
        end = clocks.index(clock) if self.by_index else clock
        return f"{end} {end}"

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Write both, twice."""
        low, _, high = value.partition(" ")
        both = f"{quoted('echo', low)} >{self.files[0]}; {quoted('echo', high)} >{self.files[1]}"
        return f"{quoted('cd', phone.gpu)} && {{ {{ {both}; }} 2>/dev/null; {both}; }}"


def available(text: str) -> list[int]:
    """Return the clocks that a driver lists, in Hz, fastest first as power levels count."""
    return sorted({int(word) for word in re.findall(r"\b\d{1,12}\b", text)} - {0}, reverse=True)


def sustainable(clocks: Sequence[int]) -> int:
    """Return the lowest clock that is at least half of the highest."""
    return min(clock for clock in clocks if clock >= SUSTAINABLE * max(clocks))


RANGES = (
    Range("frequencies", files=("devfreq/min_freq", "devfreq/max_freq")),
    Range("power-levels", files=("min_pwrlevel", "max_pwrlevel"), by_index=True),
)

GPU_KNOBS = (
    SysfsNode("bus-split", path="bus_split", target="0"),
    SysfsNode("clocks-always-on", path="force_clk_on", target="1"),
    SysfsNode("idle-timer", path="idle_timer", target=str(IDLE_TIMER_MS)),
    Governor("governor", path="devfreq/governor", target="performance"),
    *RANGES,
)
"""Knobs of the GPU, in the order of setting."""
