"""What the benchmark scripts share: a compiled case on the virtual device, ready to be timed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.device import Device, Session
from device_runner.registry import open_device
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.plan import Plan
from harness.base.suite import Suite
from harness.compile.artifacts.artifact import INPUTS, Answers, Artifact, load_arrays
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder

LONG_S = 600.0


@dataclass(frozen=True)
class Bench:
    """A case that is built, and a session on the virtual device to run it in."""

    plan: Plan
    artifact: Artifact
    inputs: list[Any]
    device: Device
    session: Session


@contextlib.contextmanager
def bench(model: str, path: str) -> Iterator[Bench]:
    """Build one case and open a session for it."""
    suite, case, cache = Suite(models=[model], paths=[path]), Case(model, path), cache_root()
    with open_device("virtual", cache) as device, Builder(cache, suite.limits) as builder:
        plan = plan_case(suite, case, device.identity, cache)
        built = builder.build([plan.compile, plan.oracle])
        artifact, answers = built[plan.compile.key], built[plan.oracle.key]
        if not isinstance(artifact, Artifact) or not isinstance(answers, Answers):
            raise SystemExit(f"{case.id} could not be built: {artifact} {answers}")
        with device.session({}, timeout_s=LONG_S) as session:
            yield Bench(plan, artifact, load_arrays(answers.folder / INPUTS), device, session)


def opencl_library() -> Path | None:
    """Our OpenCL runtime for this process, None if TVM has its own."""
    from device_runner.runtimes.opencl import needed, sidecar

    return sidecar(cache_root()) if needed() else None
