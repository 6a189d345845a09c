"""What building a network costs, step by step, in seconds of processor time.

python -m benchmarks.build_costs [MODEL] [PATH]
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.build.compile import import_model
from harness.cases.case import Precision
from harness.models.sources import model_source
from harness.paths import PATHS
from harness.paths.base import ImageLimits
from harness.paths.lowered import add_host_entry
from harness.paths.workaround import edit_model
from harness.quirks import quirks_for


def main(name: str = "resnet50", path_name: str = "opencl") -> None:
    """Print each step's share, and of ours the functions that cost most."""
    path, costs = PATHS[path_name], dict[str, float]()
    quirks = quirks_for(path_name, Precision.FLOAT32, as_shipped=False)
    target = path.target(ImageLimits(), None)
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        with _timed("draw", costs):
            file = model_source(name).onnx_file(Path(folder))
        profile.enable()
        with _timed("import", costs):
            module: Any = edit_model(import_model(file)[0], quirks)
        with _timed("lower", costs):
            lowered = path.lower(module, target, quirks)
            entries = add_host_entry(lowered)
        with _timed("build", costs):
            executable = path.build(entries, target, quirks)
        with _timed("link", costs):
            executable.export_library(str(Path(folder) / "lib.so"))
        profile.disable()
    total = sum(costs.values())
    for step, seconds in sorted(costs.items(), key=lambda one: -one[1]):
        print(f"{step:8} {seconds:6.2f} s  {seconds / total:4.0%}")
    pstats.Stats(profile).sort_stats("cumulative").print_stats("harness|onnx", 25)


@contextmanager
def _timed(step: str, costs: dict[str, float]) -> Iterator[None]:
    """Of this process and of those that it waited for."""
    began = sum(_used())
    yield
    costs[step] = sum(_used()) - began


def _used() -> tuple[float, float]:

    times = os.times()
    return times.user + times.children_user, times.system + times.children_system


if __name__ == "__main__":
    main(*sys.argv[1:])
