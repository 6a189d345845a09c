"""What a device can do at best, measured once for each identity and kept; and how near operators come to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from device_runner.disk import writing
from device_runner.files import require_name, write_whole
from harness.base.failures import UsageError
from harness.measure.kernels.operators import by_kind
from harness.measure.kernels.profile import Operator, Peaks, Profile

if TYPE_CHECKING:
    from device_runner.device import Device

FOLDER = "peaks"
TIMEOUT_S = 120.0
_UNITS = {"copy_bytes_s": "copy_gb_s", "image_bytes_s": "image_gb_s"}
_UNITS |= {"float32_flop_s": "float32_gflop_s", "float16_flop_s": "float16_gflop_s"}


def peaks_of(device: Device, cache: Path, say: Callable[[str], None]) -> Peaks:
    """Return the peaks of a device that we hold. Raises what a session raises."""
    if known := load_peaks(cache, device.identity.key):
        return known
    say("measuring the device's peak rates, once")
    return save_peaks(cache, device.identity.key, measure_peaks(device))


def load_peaks(cache: Path, identity_key: str) -> Peaks | None:
    """Return what was measured of an identity before; None if nothing was."""
    with suppress(OSError, ValueError):
        return Peaks.model_validate_json(_file(cache, identity_key).read_bytes())
    return None


def measure_peaks(device: Device) -> Mapping[str, float]:
    """Measure them, in a session of their own: bytes and operations per second, as the probe names them."""
    with device.session({}, timeout_s=TIMEOUT_S) as session:
        return session.opencl_peaks(timeout_s=TIMEOUT_S)


def save_peaks(cache: Path, identity_key: str, rates: Mapping[str, float]) -> Peaks:
    """Keep what was measured on a device. Raises DiskFull."""
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


class RooflinePoint(NamedTuple):
    """One kind of operator below the roof."""

    label: str
    intensity: float
    """Operations for each byte."""
    gflop_s: float
    share: float
    """Share of the kernels' time."""


def points_of(profile: Profile) -> list[RooflinePoint]:
    """Return what can be drawn of a profile: operators with known operations and bytes, the longest first."""
    found = []
    for label, alike in by_kind(profile):
        flops, moved = sum(one.flops or 0 for one in alike), sum(one.bytes or 0 for one in alike)
        ms = sum(one.ms for one in alike)
        if flops and moved and ms and profile.kernels_ms > 0:
            found.append(RooflinePoint(label, flops / moved, flops / ms / 1e6, ms / profile.kernels_ms))
    return found


def roof_gflop_s(peaks: Peaks, intensity: float) -> float | None:
    """Return the most that the device can do at an intensity in float32; None if its peaks are not known."""
    if not peaks.copy_gb_s or not peaks.float32_gflop_s:
        return None
    return min(peaks.float32_gflop_s, intensity * peaks.copy_gb_s)


def roof_of(peaks: Peaks, low: float, high: float) -> list[tuple[float, float]]:
    """Return the line of `roof_gflop_s` over these intensities and beyond the ridge.

    Nothing if the peaks are not known.
    """
    if not peaks.copy_gb_s or not peaks.float32_gflop_s:
        return []
    ridge = peaks.float32_gflop_s / peaks.copy_gb_s  # from there on arithmetic limits an operator
    xs = sorted({min(low, ridge), ridge, max(high, ridge * 2)})
    return [(x, rate) for x in xs if (rate := roof_gflop_s(peaks, x)) is not None]


class Bound(NamedTuple):
    """How near operators are to the best that their device can do."""

    share: float
    of: str
    """What limits them there: `GB/s` or `GFLOP/s`."""


def bound_of(operators: Sequence[Operator], peaks: Peaks) -> Bound | None:
    """Their rate as a share of the roof above them; None if that or what they need is not known."""
    ms, moved = sum(one.ms for one in operators), [one.bytes for one in operators]
    flops = [one.flops or 0 for one in operators]
    if not ms or not peaks.copy_gb_s or not peaks.float32_gflop_s:
        return None
    known = [count for count in moved if count]
    if len(known) < len(moved):
        return None
    memory, arithmetic = sum(known) / ms / 1e6 / peaks.copy_gb_s, sum(flops) / ms / 1e6 / peaks.float32_gflop_s
    return Bound(memory, "GB/s") if memory > arithmetic else Bound(arithmetic, "GFLOP/s")
