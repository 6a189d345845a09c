"""Everything on a phone that is set so that measurements repeat, and put back afterwards."""

from __future__ import annotations

from device_runner.stability.knobs.base import Knob, PhoneAccess, probe
from device_runner.stability.knobs.keep import KNOBS, Report, complains, hold, restore
from device_runner.stability.knobs.kgsl import RANGES

__all__ = ["KNOBS", "RANGES", "Knob", "PhoneAccess", "Report", "complains", "hold", "probe", "restore"]
