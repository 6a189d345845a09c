"""Sources of a phone's temperatures and clocks. One script reads all, so that a look costs one round trip.

Each node is tried by its exact path, because a phone may refuse to list a folder whose files it lets one read; what
says nothing at the first look is not asked again. `read` is the shell's own, so a node costs no process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from device_runner.stability.reading import battery_is_faked, status_is_faked
from device_runner.transport.batch import MARK, sections

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

GPU_NODES = (
    *("temp", "thermal_pwrlevel", "max_clock_mhz", "gpuclk", "gpu_busy_percentage"),
    *("gpu_available_frequencies", "gpu_clock_stats", "reset_count"),
)
BOOT = "boot_id"
"""The name under which every look says which boot of the phone it was made in."""

GPU_ZONES = "gpu_zones"
"""The name under which a first look says which folders are thermal zones of the GPU: of a hundred, one to three."""
DUMPS = ("thermalservice", "battery")
READ_TIMEOUT_S = 10.0

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
if [ $# -lt 4 ]; then
  for zone in "$1"/sys/class/thermal/thermal_zone*; do
    kind=; {{ read -r kind <"$zone/type"; }} 2>/dev/null
    case $kind in [Gg][Pp][Uu]*) zones="$zones $zone" ;; esac
  done
  echo "{MARK} {GPU_ZONES}
$zones
{MARK} 0"
fi
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
LOOK_SCRIPT = f"""gpu=$1/sys/class/kgsl/kgsl-3d0 nodes=${{2-{" ".join(GPU_NODES)}}} dumps=${{3-{" ".join(DUMPS)}}}
zones=$4{_BOOT}{_NODES}{_ZONES}{_DUMPS}"""
"""Arguments: where `/sys` begins, nodes, dumps, zones. Without any it reads all: a bundle takes it along."""


def texts_in(printed: str) -> dict[str, str]:
    """Return what each source said, by its name, in what such a script printed."""
    return {name: section.text.strip() for name, section in sections(printed).items()}


class Sources:
    """The sources of one phone. Its first look finds out which there are."""

    def __init__(self, transport: Transport, system: str = "") -> None:
        self._transport = transport
        self._system = system
        self._names: tuple[str, ...] = ()
        """The nodes, dumps and zones that said something at the first look."""

    def read(self) -> dict[str, str]:
        """Return what each source says now, by its name. Raises `DeviceFailure` if the phone does not answer."""
        asked = self._names or (" ".join(GPU_NODES), " ".join(DUMPS))
        command = ["sh", "-c", LOOK_SCRIPT, "read its heat and pace", self._system, *asked]
        texts = texts_in(self._transport.shell(command, timeout_s=READ_TIMEOUT_S).stdout)
        if not self._names:
            dumps = (name for name in DUMPS if ":" in texts.get(name, ""))
            zones = texts.pop(GPU_ZONES, "")
            self._names = " ".join(filter(texts.get, GPU_NODES)), " ".join(dumps), zones
        return texts

    def notes(self, texts: dict[str, str]) -> list[str]:
        """Return what a person should know of these answers."""
        faked = "the thermal status is faked: `cmd thermalservice reset`"
        charge = "the battery's state is faked: `dumpsys battery reset`"
        notes = [faked] if status_is_faked(texts.get("thermalservice", "")) else []
        return [*notes, charge] if battery_is_faked(texts.get("battery", "")) else notes
