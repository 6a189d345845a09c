"""What is noted of a network's kernels: threads of a launch, and launches of an inference."""

from __future__ import annotations

from typing import Any

from harness.build.reference_kernel import THREADS, _module
from harness.paths import PATHS
from harness.paths.base import ImageLimits
from harness.paths.lowered import Launch, add_host_entry, launches


def test_threads_and_calls_are_those_of_the_lowered_module() -> None:
    path = PATHS["opencl"]
    target = path.target(ImageLimits(), None)
    lowered = path.lower(_module(), target, ())
    tir: list[Any] = []
    path.build(add_host_entry(lowered), target, (), tir.append)

    assert launches(lowered, tir[0]) == {"spin_kernel": Launch(threads=THREADS, group=64, per_inference=1)}
