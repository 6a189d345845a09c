"""Networks whose tolerance is wide, and which faults are seen there: a table in Markdown.

    python -m benchmarks.wide_tolerances [SUITE...]

Suites are files, or `zoo`. Without any it is the zoo and `real_networks.toml`, whose packages `make test-real`
installs. TVM is not needed: onnxruntime's own answer is changed, and the product's judge compares both. A row is that
output of a network which has the widest tolerance, if it is more than 5 % of its peak for one number, or of its root
mean square. Integers have no tolerance.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.real_networks import SUITE
from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR, Precision
from harness.base.failures import ModelError, NoOutsideAnswer
from harness.base.model import model_name
from harness.base.suite import Suite, load_suite
from harness.compile.artifacts.jobs import find_truth
from harness.compile.artifacts.planner import plan_oracle
from harness.compile.oracle.leeway import peak_and_rms
from harness.measure.correctness import Truth, relative_tolerances
from harness.measure.work import load_truth
from harness.tools.shared.markdown import unpadded_markdown
from harness.tools.zoo.models import ZOO

if TYPE_CHECKING:
    from device_runner.device import Array

WIDE = 0.05
HEADERS = (
    "network",
    "precision",
    "output",
    "one number",
    "RMS",
    "2 % scale",
    "20 % scale",
    "20 % in one",
    "off by one",
)
Fault = Callable[["Array"], "Array"]


def _one_off(right: Array) -> Array:
    """Return the answer with its middle number off by 20 % of the peak."""
    answer: Array = right.copy()
    answer.flat[answer.size // 2] += np.float32(0.2 * np.abs(right).max())
    return answer


FAULTS: Sequence[Fault] = (
    lambda right: right * right.dtype.type(1.02),
    lambda right: right * right.dtype.type(1.2),
    _one_off,
    lambda right: np.roll(right, 1),
)
"""In the order of the last columns: both scales, one number, and each number at its neighbour's place."""


def limits(truth: Truth, index: int) -> tuple[float, float]:
    """Return how far the number that is bound least may be off, of the peak, and all of them, of their RMS."""
    right = truth.expected[index]
    peak, rms = peak_and_rms(right.astype(np.float64))
    leeway, (least,) = truth.leeway[index], relative_tolerances(1, truth.relative_tolerance, truth.rounding[index:][:1])
    nothing = np.zeros(right.shape)
    own, decided = (nothing if each is None else each.astype(np.float64) for each in (leeway.own, leeway.decided))
    many = min(2 * peak_and_rms(decided)[1], 2 * leeway.spread) + peak_and_rms(own)[1]
    return least + float((leeway.flips(right) + own).max()) / peak, least + many / rms


def rows(suite: Suite, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a network, one for each precision in which a tolerance is wide."""
    with tempfile.TemporaryDirectory() as folder:
        find_truth(plan_oracle(suite, name, Path(folder)).payload, Path(folder))
        for precision in Precision:
            factor, tolerance = ROUNDING_FACTOR[precision.value], RELATIVE_TOLERANCE[precision.value]
            truth = load_truth(Path(folder), tolerance, factor, precision.value)
            real = [at for at, right in enumerate(truth.expected) if right.dtype.kind == "f" and np.any(right)]
            index = max(real, key=lambda at: max(limits(truth, at)), default=None)
            if index is not None and max(limits(truth, index)) > WIDE:
                one, many = limits(truth, index)
                seen = ["yes" if _sees(truth, index, fault) else "no" for fault in FAULTS]
                yield name, precision.value, str(index), f"{one:.0%}", f"{many:.0%}", *seen


def _sees(truth: Truth, index: int, fault: Fault) -> bool:
    """Return whether an output with a fault is wrong."""
    outputs = [fault(right) if at == index else right for at, right in enumerate(truth.expected)]
    return not truth.judge(outputs).right


def main(names: Sequence[str]) -> None:
    """Print the table."""
    zoo = Suite(models=[model.name for model in ZOO], paths=["opencl"])
    found: list[tuple[str, ...]] = []
    for suite in [zoo if name == "zoo" else load_suite(Path(name)) for name in names or ("zoo", str(SUITE))]:
        for model in suite.models:
            try:
                found += rows(suite, model_name(model))
            except (ModelError, NoOutsideAnswer) as failure:
                print(f"{model_name(model)}: {failure}", file=sys.stderr)
            print(f"{model_name(model)}: {len(found)} rows so far", file=sys.stderr, flush=True)
    print(unpadded_markdown(found, HEADERS))


if __name__ == "__main__":
    main(sys.argv[1:])
