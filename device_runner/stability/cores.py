"""The big cores of a phone's processor, to which TVM's server is bound: on a little one each call takes longer.

Which cores are big is told by the fastest clock of each (`cpuinfo_max_freq`, which everybody may read): all but the
slowest ones, because many processors have a single fastest core, and the GPU's driver has threads of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

TIMEOUT_S = 10.0
MOST_CORES = 1024
KEEP_MASK = ("env", "TVM_BIND_THREADS=0")
"""Else TVM's thread pool chooses cores of its own for its threads and the one that calls it, whatever the mask is
(apache/tvm, src/runtime/threading_backend.cc, SetAffinity)."""

CLOCKS_SCRIPT = """
for cpu in "$1"/sys/devices/system/cpu/cpu[0-9]*; do
  clock=; { read -r clock <"$cpu/cpufreq/cpuinfo_max_freq"; } 2>/dev/null; echo "${cpu##*/cpu} $clock"
done
"""


@dataclass(frozen=True)
class Binding:
    """What a command begins with, so that it runs on the big cores alone, and what a record says of that."""

    prefix: tuple[str, ...]
    """Empty if it is not bound."""
    message: str


def bound_to_big_cores(transport: Transport, system: str = "") -> Binding:
    """Return how a command is bound on this phone, found by trying; `system` is where `/sys` begins.

    Raises `DeviceFailure` or `RigFailure` if it does not answer.
    """
    command = ["sh", "-c", CLOCKS_SCRIPT, "read the clocks of its cores", system]
    clocks = clocks_khz(transport.shell(command, timeout_s=TIMEOUT_S).stdout)
    if not clocks:
        return Binding((), "not bound: the clocks of the cores cannot be read")
    if not (big := big_cores(clocks)):
        return Binding((), f"not bound: all {len(clocks)} cores are equally fast")
    mask = f"{sum(1 << core for core in big):x}"
    prefix = (*KEEP_MASK, "taskset", mask)
    tried = transport.shell([*prefix, "true"], timeout_s=TIMEOUT_S)
    if tried.code:
        why = (tried.stderr.strip() or f"exit code {tried.code}").splitlines()[-1][:200]
        return Binding((), f"not bound: {why}")
    return Binding(prefix, f"bound to cores {', '.join(map(str, big))} of {len(clocks)} (taskset {mask})")


def clocks_khz(printed: str) -> Mapping[int, int]:
    """Return the fastest clock of each core that tells it, by the core's number."""
    matches = re.findall(r"^(\d{1,4}) (\d{1,12})$", printed, re.MULTILINE | re.ASCII)
    return {int(core): int(clock) for core, clock in matches if int(core) < MOST_CORES and int(clock)}


def big_cores(clocks: Mapping[int, int]) -> list[int]:
    """Return all but the slowest; none if all are equally fast."""
    slowest = min(clocks.values(), default=0)
    return sorted(core for core, clock in clocks.items() if clock > slowest)
