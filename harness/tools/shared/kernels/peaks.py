"""What a device can do at best, measured once for each identity and kept; and how near operators come to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from device_runner.device import Device
from device_runner.failures import Failure, KernelBuildFailure, ProgramFailure, RigFailure
from device_runner.files import require_name, write_whole
from device_runner.rpc_device import RpcDevice
from device_runner.runtimes.probe import c_module
from device_runner.runtimes.probe.answers import BadAnswer, read
from harness.base.failures import UsageError
from harness.tools.shared.full_disk import writing
from harness.tools.shared.kernels.profile import Peaks

FOLDER = "peaks"
TIMEOUT_S = 120.0
_UNITS = {"copy_bytes_s": "copy_gb_s", "image_bytes_s": "image_gb_s"}
_UNITS |= {"float32_flop_s": "float32_gflop_s", "float16_flop_s": "float16_gflop_s"}
module = c_module("peak_rates", "what measures peak rates", Path(__file__).parent / "src").file
"""Returns the TVM module that measures, from a cache and the device's ABI."""


def peaks_of(device: Device, cache: Path, say: Callable[[str], None]) -> Peaks:
    """Return the peaks of a device that we hold. Raises what a session raises."""
    if peaks := load_peaks(cache, device.identity.key):
        return peaks
    say("measuring the device's peak rates, once")
    return save_peaks(cache, device.identity.key, _measure(device, cache))


def _measure(device: Device, cache: Path) -> dict[str, float]:
    """Return peak rates of a device, per second, measured now: none where that cannot be compiled or fails there."""
    assert isinstance(device, RpcDevice)
    try:
        file = module(cache, device.identity.abi)
    except (Failure, OSError):
        return {}
    with device.session({}, timeout_s=TIMEOUT_S) as session:
        names = session.opencl_names(timeout_s=TIMEOUT_S)
        try:
            return rates_of(session.ask(file, "peaks", *names, timeout_s=TIMEOUT_S)) if names else {}
        except BadAnswer as bad:
            raise RigFailure(f"the measured peaks of {device.name} are impossible: {bad}") from bad
        except (KernelBuildFailure, ProgramFailure):
            return {}


def rates_of(text: bytes) -> dict[str, float]:
    """Read what `peaks` returned: rates by name, per second, those that were measured. Raises BadAnswer."""
    with read(text) as answer:
        rates = {str(name): float(rate) for name, rate in answer.items() if name != "problem" and rate}
    if not all(0 < rate < math.inf for rate in rates.values()):
        raise BadAnswer("a rate that is not positive")
    return rates


def load_peaks(cache: Path, identity_key: str) -> Peaks | None:
    """Return what was measured of an identity before; None if nothing was."""
    with suppress(OSError, ValueError):
        return Peaks.model_validate_json(_file(cache, identity_key).read_bytes())
    return None


def save_peaks(cache: Path, identity_key: str, rates: Mapping[str, float]) -> Peaks:
    """Keep what was measured on a device: bytes and operations per second, as `peaks` names them. Raises DiskFull."""
    peaks = Peaks(**{_UNITS[name]: rate / 1e9 for name, rate in rates.items() if name in _UNITS})
    with writing(cache):
        write_whole(_file(cache, identity_key), peaks.model_dump_json())
    return peaks


def save_reported_peaks(cache: Path, identity_key: str, rates: Mapping[str, float]) -> None:
    """Keep what was measured elsewhere, unless there is something that was measured from here. Raises DiskFull."""
    if not _file(cache, identity_key).exists():
        save_peaks(cache, identity_key, rates)


def _file(cache: Path, identity_key: str) -> Path:
    """Raise UsageError for a key, which may come from records of others, that would lead elsewhere."""
    try:
        return cache / FOLDER / f"{require_name(identity_key)}.json"
    except ValueError as error:
        raise UsageError(str(error), hint="these results were not written by adreno-bench") from None
