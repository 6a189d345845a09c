"""What a device can do at best: measured once for each identity, and kept."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from device_runner.disk import writing
from device_runner.files import write_whole
from harness.profile.profile import Peaks

if TYPE_CHECKING:
    from device_runner.device import Device
    from harness.run.progress import Progress
    from harness.workbench import Workbench

FOLDER = "peaks"
TIMEOUT_S = 120.0
_UNITS = {"copy_bytes_s": "copy_gb_s", "image_bytes_s": "image_gb_s"}
_UNITS |= {"float32_flop_s": "float32_gflop_s", "float16_flop_s": "float16_gflop_s"}


def peaks_of(bench: Workbench, progress: Progress) -> Peaks:
    """The peaks of the device that the workbench holds. Raises what a session raises."""
    file = bench.request.cache / FOLDER / f"{bench.device.identity.key}.json"
    with suppress(OSError, ValueError):
        return Peaks.model_validate_json(file.read_bytes())
    progress.say("measuring what this device can do at best, once")
    peaks = measured(bench.device)
    with writing(bench.request.cache):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, peaks.model_dump_json().encode())
    return peaks


def measured(device: Device) -> Peaks:
    """Measure them, in a session of their own."""
    with device.session({}, timeout_s=TIMEOUT_S) as session:
        rates = session.opencl_peaks(timeout_s=TIMEOUT_S)
    return Peaks(**{_UNITS[name]: rate / 1e9 for name, rate in rates.items() if name in _UNITS})
