"""The launches of a profile as a file for trace viewers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.device import Launch


def trace_of(inferences: Sequence[Sequence[Launch]]) -> str:
    """Return the launches as a trace that Perfetto and Chrome open (the "Trace Event Format"; times in µs)."""
    begin = min(launch.queued_ns for inference in inferences for launch in inference)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": list(_events(inferences, begin))})


def _events(inferences: Sequence[Sequence[Launch]], begin: int) -> Iterator[dict[str, object]]:
    for number, inference in enumerate(inferences):
        for launch in inference:
            arguments = {
                "inference": number,
                "threads": launch.threads,
                "group": launch.group,
                "queued for us": (launch.start_ns - launch.queued_ns) / 1e3,
            }
            times = {"ts": (launch.start_ns - begin) / 1e3, "dur": (launch.end_ns - launch.start_ns) / 1e3}
            yield {"name": launch.kernel, "ph": "X", "pid": 0, "tid": "kernels", **times, "args": arguments}
