"""Where a phone shows its temperatures and clocks. One script reads everything, so that a look costs one round trip.

Each node is tried by its exact path, because a phone may refuse to list a folder whose files it lets one read; what
says nothing at the first look is not asked again. `read` is the shell's own, so a node costs no process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from device_runner.stability.reading import battery_is_faked, status_is_faked
from device_runner.transport.batch import MARK, sections

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

GPU_NODES = (
    "temp",
    "thermal_pwrlevel",
    "max_clock_mhz",
    "gpuclk",
    "gpu_busy_percentage",
    "gpu_available_frequencies",
    "gpu_clock_stats",
    "reset_count",
)
BOOT = "boot_id"
"""The name under which every look says which boot of the phone it was made in."""

DUMPS = ("thermalservice", "battery")
MOST_ZONES = 16
READ_TIMEOUT_S = 10.0

_GPU_ZONE = re.compile(r"^gpu", re.IGNORECASE)

_BOOT = f"""
boot=; {{ read -r boot </proc/sys/kernel/random/boot_id; }} 2>/dev/null
echo "{MARK} {BOOT}
$boot
{MARK} 0"
"""
_NODES = f"""
for name in $nodes; do
  value=; {{ read -r value <"$gpu/$name"; }} 2>/dev/null
  echo "{MARK} $name
$value
{MARK} 0"
done
"""
_ZONES = f"""
echo "{MARK} zones"
for zone in $zones; do value=; {{ read -r value <"$zone/temp"; }} 2>/dev/null; echo "$value"; done
echo "
{MARK} 0"
"""
_DUMPS = f"""
for name in $dumps; do
  echo "{MARK} $name"
  dumpsys "$name" 2>/dev/null
  echo "
{MARK} 0"
done
"""
READ_SCRIPT = f"gpu=$1 nodes=$2 zones=$3 dumps=$4{_BOOT}{_NODES}{_ZONES}{_DUMPS}"
FIND_SCRIPT = """
for zone in "$1"/thermal_zone*; do kind=; { read -r kind <"$zone/type"; } 2>/dev/null; echo "$zone $kind"; done
"""

LOOK_SCRIPT = f"""gpu=/sys/class/kgsl/kgsl-3d0 nodes='{" ".join(GPU_NODES)}' dumps='{" ".join(DUMPS)}' zones=
for zone in /sys/class/thermal/thermal_zone*; do
  kind=; {{ read -r kind <"$zone/type"; }} 2>/dev/null
  case $kind in [Gg][Pp][Uu]*) zones="$zones $zone" ;; esac
done
{_BOOT}{_NODES}{_ZONES}{_DUMPS}"""
"""A first look by itself, for a phone that is only reached by those who bring it a script."""


def texts_in(printed: str) -> dict[str, str]:
    """What each source said, by its name, in what such a script printed."""
    return {name: section.text.strip() for name, section in sections(printed).items()}


class Sources:
    """The sources of one phone. Its first look finds out which there are."""

    def __init__(self, transport: Transport, system: str = "") -> None:
        self._transport = transport
        self._gpu = f"{system}/sys/class/kgsl/kgsl-3d0"
        self._thermal = f"{system}/sys/class/thermal"
        self._nodes: Sequence[str] | None = None
        self._zones: Sequence[str] = ()
        self._dumps: Sequence[str] = DUMPS

    def read(self) -> dict[str, str]:
        """What each source says now, by its name. Raises `DeviceFailure` if the phone does not answer."""
        if self._nodes is None:
            return self._first_look()
        arguments = [self._gpu, " ".join(self._nodes), " ".join(self._zones), " ".join(self._dumps)]
        return texts_in(self._shell(["sh", "-c", READ_SCRIPT, "read its heat and pace", *arguments]))

    def notes(self, said: dict[str, str]) -> list[str]:
        """What a person should know of these answers."""
        faked = "the thermal status is faked: `cmd thermalservice reset`"
        charge = "the battery's state is faked: `dumpsys battery reset`"
        notes = [faked] if status_is_faked(said.get("thermalservice", "")) else []
        return [*notes, charge] if battery_is_faked(said.get("battery", "")) else notes

    def _first_look(self) -> dict[str, str]:
        found = self._shell(["sh", "-c", FIND_SCRIPT, "find thermal zones", self._thermal])
        pairs = (line.rpartition(" ") for line in found.splitlines())
        self._zones = [zone for zone, _, kind in pairs if _GPU_ZONE.match(kind) and " " not in zone][:MOST_ZONES]
        self._nodes = GPU_NODES
        said = self.read()
        self._nodes = [name for name in GPU_NODES if said.get(name)]
        self._dumps = [name for name in DUMPS if ":" in said.get(name, "")]
        return said

    def _shell(self, command: Sequence[str]) -> str:
        return self._transport.shell(command, timeout_s=READ_TIMEOUT_S).stdout
