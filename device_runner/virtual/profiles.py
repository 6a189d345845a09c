"""Kinds of phones that the virtual one can be: a state, faults, and what its processes find in their environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from device_runner.virtual.faults import Faults
from device_runner.virtual.opencl import MEMORY_VARIABLE


@dataclass(frozen=True)
class Profile:
    """One kind of phone. By default the virtual phone as it is."""

    state: Mapping[str, Any] = field(default_factory=dict)
    """Changes to `PhoneState`, mapping by mapping."""
    faults: Faults = field(default_factory=Faults)
    environment: Mapping[str, str] = field(default_factory=dict)


DENIED = Profile(
    state={
        "properties": {"persist.sys.locale": "ar-EG", "ro.product.locale": "ar-EG"},
        "restrictions": {"gpu_nodes": True, "settings": True, "su_dialog_s": 3600, "dumpsys_s": 0.2},
    },
    faults=Faults(latency_s=0.08, crash_delay_s=2.0),
    environment={MEMORY_VARIABLE: "0"},
)
"""A phone on Wi-Fi that keeps much from adb's shell: no nodes of the GPU, no settings without a tap on the phone, an
`su` that waits for a dialog, slow answers, an OpenCL that tells no memory, and a locale with digits of its own."""
