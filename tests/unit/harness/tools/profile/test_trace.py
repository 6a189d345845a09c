"""The launches of a profile as a file for trace viewers."""

from __future__ import annotations

import json

from device_runner.device import Launch
from harness.tools.profile.trace import trace_of


def launch(kernel: str, start_ns: int, ms: float) -> Launch:
    return Launch(kernel, (64, 1, 1), (16, 1, 1), start_ns, start_ns, start_ns, start_ns + int(ms * 1e6))


def test_a_trace_has_every_launch_in_microseconds() -> None:
    events = json.loads(trace_of([[launch("a", 1_000, 0.5), launch("b", 901_000, 0.25)]]))["traceEvents"]
    assert [(event["name"], event["ts"], event["dur"]) for event in events] == [("a", 0.0, 500.0), ("b", 900.0, 250.0)]
