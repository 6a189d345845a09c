"""The list. A new knob is a class in a file of this folder, and a line here."""

from __future__ import annotations

from device_runner.stability.knobs.base import Knob
from device_runner.stability.knobs.kgsl import GPU_KNOBS
from device_runner.stability.knobs.power import FixedPerformance
from device_runner.stability.knobs.radio import AirplaneMode
from device_runner.stability.knobs.screen import Wakefulness
from device_runner.stability.knobs.settings import ANIMATIONS, BRIGHTNESS, STAY_AWAKE

KNOBS: tuple[Knob, ...] = (
    STAY_AWAKE,
    Wakefulness(),
    *BRIGHTNESS,
    *ANIMATIONS,
    AirplaneMode(),
    FixedPerformance(),
    *GPU_KNOBS,
)
"""In the order in which they are set; they are restored in the opposite one."""
