"""A GPU of this host: what its driver says of clock, heat and power. It is read and never set."""

from device_runner.stability.host_gpu.held import judge, pulses, steadily
from device_runner.stability.host_gpu.reading import GpuReading
from device_runner.stability.host_gpu.sources import source

__all__ = ["GpuReading", "judge", "pulses", "source", "steadily"]
