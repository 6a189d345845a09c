"""The virtual phone: an adb daemon in front of an Android-shaped folder, in a sandbox, with the real adb server.

docs/virtual-device.md says what of it is real and what is emulated.
"""

from device_runner.virtual.faults import Chance, Faults, Heat, Kernels, Mishap, SlowKernels
from device_runner.virtual.handle import EMULATED, VirtualPhone, virtual_phone

__all__ = ["EMULATED", "Chance", "Faults", "Heat", "Kernels", "Mishap", "SlowKernels", "VirtualPhone", "virtual_phone"]
