"""What judging a timed program again costs a case: ms of it, seconds of the case, and the share.

    python -m benchmarks.judge_again_cost [MODEL...]

Models are names of the zoo or ONNX files, each on opencl on the virtual device, with the usual samples. The case is
what follows its build: from opening its session to its record. Goal: at most 1 %.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from device_runner.registry import open_device
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.model import Model, OnnxModel, model_name
from harness.base.suite import Suite
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder
from harness.measure import loop, standard_probes
from harness.measure.again import judge_again
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.tuning import TuningStore
from harness.tools.shared.markdown import unpadded_markdown

HEADERS = ("case", "again", "in all", "share")
MODELS = ("tiny", "digits", "lstm", "mobilenet_v1", "resnet18")


def main(words: Sequence[str]) -> None:
    """Measure each case and print the table."""
    rows: list[Sequence[str]] = []
    models: list[Model] = [OnnxModel(onnx=Path(word)) if word.endswith(".onnx") else word for word in words or MODELS]
    suite, cache = Suite(models=models, paths=["opencl"]), cache_root()
    with (
        tempfile.TemporaryDirectory() as tunings,
        open_device("virtual", cache) as device,
        Builder(cache, suite.limits) as builder,
    ):
        run = Run(device, TuningStore(Path(tunings)))
        for model in models:
            plan = plan_case(suite, Case(model_name(model), "opencl"), device.identity, cache)
            built = builder.build(plan.jobs)
            spent_s: list[float] = []
            began = time.perf_counter()
            with _timed_looks(spent_s):
                record = run_with_recovery(plan, built, run, SilentProgress())
            if not spent_s:
                raise SystemExit(f"{record.case} was not judged again: {record.outcome.value} {record.message}")
            rows.append(cost_row(record.case, sum(spent_s), time.perf_counter() - began))
    print(unpadded_markdown(rows, HEADERS))


def cost_row(case: str, again_s: float, case_s: float) -> tuple[str, ...]:
    """Return one case's row."""
    return case, f"{again_s * 1e3:.1f} ms", f"{case_s:.1f} s", f"{100 * again_s / case_s:.2f} %"


@contextmanager
def _timed_looks(spent_s: list[float]) -> Iterator[None]:
    """Add the seconds of each judging again to a list."""

    def timed(*arguments: Any) -> bool:
        began = time.perf_counter()
        try:
            return judge_again(*arguments)
        finally:
            spent_s.append(time.perf_counter() - began)

    with mock.patch.object(loop, "judge_again", timed), mock.patch.object(standard_probes, "judge_again", timed):
        yield


if __name__ == "__main__":
    main(sys.argv[1:])
