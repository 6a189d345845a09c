"""What building a network costs, step by step and pass by pass, in seconds of processor time.

python -m benchmarks.build_costs [MODEL] [PATH]
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from harness.base.case import Precision
from harness.compile.artifacts.compile import import_model
from harness.compile.compiler import pass_runner
from harness.compile.models.sources import model_source
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits, edit_model
from harness.compile.paths.lowered_module import add_host_entry
from harness.compile.quirks import quirks_for

MOST_PASSES = 5


def main(name: str = "resnet50", path_name: str = "opencl") -> None:
    """Print what each step takes, and the passes that take most."""
    path, steps, passes = PATHS[path_name], dict[str, float](), dict[str, float]()
    quirks = quirks_for(path_name, Precision.FLOAT32, as_shipped=False)
    target = path.target(ImageLimits(), None)
    with tempfile.TemporaryDirectory() as folder, _time_passes(passes):
        with _time_step("draw", steps):
            file = model_source(name).onnx_file(Path(folder))
        with _time_step("import", steps):
            module: Any = edit_model(import_model(file)[0], quirks)
        with _time_step("lower", steps):
            lowered = path.lower(module, target, quirks)
        entries = add_host_entry(lowered)
        with _time_step("build", steps):
            executable = path.build(entries, target, quirks)
        with _time_step("link", steps):
            executable.export_library(str(Path(folder) / "lib.so"))
    _print(steps)
    print()
    _print(dict(sorted(passes.items(), key=lambda one: -one[1])[:MOST_PASSES]))


@contextmanager
def _time_passes(costs: dict[str, float]) -> Iterator[None]:
    """Time each of TVM's passes."""
    run = pass_runner.run_step

    def timed(name: str, step: Callable[[Any], Any], mod: Any) -> Any:
        with _time_step(name, costs):
            return run(name, step, mod)

    with mock.patch.object(pass_runner, "run_step", timed):
        yield


@contextmanager
def _time_step(step: str, costs: dict[str, float]) -> Iterator[None]:
    """Of this process and of those that it waited for."""
    began = sum(os.times()[:4])
    yield
    costs[step] = costs.get(step, 0.0) + sum(os.times()[:4]) - began


def _print(costs: Mapping[str, float]) -> None:
    for what, seconds in sorted(costs.items(), key=lambda one: -one[1]):
        print(f"{seconds:6.2f} s  {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
