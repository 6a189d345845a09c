"""Where the judges of ONNX networks disagree: with each other, or with ONNX's own node tests.

    python -m benchmarks.judges
    python -m benchmarks.judges FOLDER

The first asks each judge for all node tests of ONNX, and compares with the test's answer. The second asks for all
networks of a folder, such as `benchmarks.operator_attributes` writes, and compares ONNX's reference with onnxruntime:
what the reference mistakes (`harness.compile.oracle.onnx_reference.MISTAKES`) was found so. Prints each network on
which they disagree by more than a thousandth of the output's scale, and how many answers agree.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.spec import seeded_inputs
from harness.compile.oracle.judge import NoAnswer, Refusal
from harness.compile.oracle.onnx_reference import OnnxReference
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.tools.ops.networks import node_tests

Arrays = Sequence[np.ndarray[Any, Any]]
JUDGES = (OnnxRuntime, OnnxReference)
CLOSE = 1e-3


def main() -> None:
    """Print the disagreements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="a folder of networks (default: ONNX's node tests)")
    folder = parser.parse_args().folder
    counts: Counter[str] = Counter()
    for name, verdict in with_each_other(folder) if folder else with_node_tests():
        counts[verdict if verdict in ("the same", "no answer") else "others"] += 1
        if verdict not in ("the same", "no answer"):
            print(f"{name}: {verdict}")
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))


def with_node_tests() -> Iterator[tuple[str, str]]:
    """Yield what each judge's answer to each node test is beside the test's."""
    for test in node_tests({}):
        for judge in JUDGES:
            answer = ask(judge, onnx.load_from_string(test.model), test.inputs)
            yield f"{test.name}, {judge.__name__}", compared(answer, list(test.outputs.values()))


def with_each_other(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what the reference's answer to each network is beside onnxruntime's."""
    for file in sorted(folder.glob("*.onnx")):
        model = onnx.load(file)
        inputs = seeded_inputs(input_specs(model), seed=0)
        one, other = (ask(judge, model, inputs) for judge in JUDGES)
        yield file.name, compared(other, one)


def ask(judge: type[OnnxRuntime] | type[OnnxReference], model: Any, inputs: Mapping[str, Any]) -> Arrays | None:
    """Return the judge's answer, or None if it has none."""
    try:
        return judge(model).ask(inputs)
    except (NoAnswer, Refusal):
        return None


def compared(answer: Arrays | None, expected: Arrays | None) -> str:
    """Say where an answer is another one, or that it is the same."""
    if answer is None or expected is None:
        return "no answer"
    for index, (mine, its) in enumerate(zip(answer, expected, strict=False)):
        if not isinstance(mine, np.ndarray):  # but a sequence, or a map
            continue
        if mine.shape != its.shape:
            return f"output {index} has shape {mine.shape} beside {its.shape}"
        scale = CLOSE * float(np.abs(its[np.isfinite(its)]).max(initial=1e-3)) if its.dtype.kind in "fc" else 0
        if not np.allclose(mine, its, rtol=CLOSE if scale else 0, atol=scale, equal_nan=True):
            return f"output {index} differs"
    return "the same"


if __name__ == "__main__":
    main()
