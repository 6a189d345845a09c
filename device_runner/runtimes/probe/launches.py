"""What the probe tells of launches, batches and peaks. It comes from the device, so it is checked and not trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from device_runner.device import Launch
from device_runner.runtimes.probe.answer import BadAnswer


def launches_of(text: bytes) -> tuple[list[Launch], int]:
    """Read what `launches` returned: those with times, oldest first, and how many were dropped. Raises BadAnswer."""
    try:
        told = json.loads(text.decode(errors="replace"))
        return [_launch(one) for one in told["launches"]], int(told["dropped"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadAnswer(f"{type(error).__name__}: {error}") from error


def _launch(told: Mapping[str, Any]) -> Launch:
    times = (int(told["queued"]), int(told["submit"]), int(told["start"]), int(told["end"]))
    if list(times) != sorted(times):
        raise BadAnswer(f"a launch of {told['kernel']} ends before it starts")
    return Launch(str(told["kernel"]), _sizes(told["global"]), _sizes(told["local"]), *times)


def _sizes(told: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = map(int, told)
    return x, y, z


def peaks_of(text: bytes) -> dict[str, float]:
    """Read what `peaks` returned: rates by name, per second, those that were measured. Raises BadAnswer."""
    try:
        told = json.loads(text.decode(errors="replace"))
        return {str(name): float(rate) for name, rate in told.items() if name != "problem" and rate}
    except (ValueError, TypeError, AttributeError) as error:
        raise BadAnswer(f"{type(error).__name__}: {error}") from error


def batches_of(text: bytes, repeat: int) -> tuple[list[float], list[float]]:
    """Read what `batches` returned: ms of an inference, in batches and each waited for. Raises BadAnswer."""
    try:
        told = json.loads(text.decode(errors="replace"))
        batched, synced = ([float(ns) / 1e6 for ns in told[kind]] for kind in ("batched_ns", "synced_ns"))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadAnswer(f"{type(error).__name__}: {error}") from error
    if not len(batched) == len(synced) == repeat or min(*batched, *synced) <= 0:
        raise BadAnswer(f"{len(batched)} and {len(synced)} times of {repeat} batches")
    return batched, synced
