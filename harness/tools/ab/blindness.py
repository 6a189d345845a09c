"""Whether slowness could be seen in sessions: further ones are of no use where it could not."""

from __future__ import annotations

from harness.judge.compare import joined_probes, probes_by_rig
from harness.judge.sides import Sides
from harness.judge.stats.controls import blindness
from harness.measure.probes.reference import FACTOR


def blindness_of(base: Sides, head: Sides) -> str:
    """Return why no slowness can be seen in these sessions: a kernel made slower is not measured slower.

    Empty if it is.
    """
    probes = joined_probes(probes_by_rig({key: (base[key], side) for key, side in head.items() if key in base}))
    return next(filter(None, (blindness(where, probe, FACTOR) for where, probe in probes.items())), "")
