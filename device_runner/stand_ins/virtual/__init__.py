"""The virtual phone: an adb daemon in front of an Android-shaped folder, in a sandbox, with the real adb server.

docs/explanation/virtual-device.md says what of it is real and what is emulated.
"""

from typing import TYPE_CHECKING, Any

from device_runner.stand_ins.virtual.faults import Chance, FailingKernels, Faults, Heat, Kernels, Mishap, SlowKernels

if TYPE_CHECKING:
    from device_runner.stand_ins.virtual.handle import EMULATED, VirtualPhone, virtual_phone

__all__ = [
    "EMULATED",
    "Chance",
    "FailingKernels",
    "Faults",
    "Heat",
    "Kernels",
    "Mishap",
    "SlowKernels",
    "VirtualPhone",
    "virtual_phone",
]


def __getattr__(name: str) -> Any:
    """Load the code that starts a phone on demand, because the phone's own programs import this package, too."""
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name}")
    from device_runner.stand_ins.virtual import handle

    return getattr(handle, name)
