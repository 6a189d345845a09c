"""What a network is made of, counted from its graph, and what each path can take of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def network(*nodes: Any, x: tuple[int | str, ...] = (1, 4, 8, 8), opset: int = 13, **weights: Any) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [value("x", TensorProto.FLOAT, x)], [value("y", TensorProto.FLOAT, None)], tensors
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_inspect_loads_no_tvm() -> None:
    import subprocess
    import sys

    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom harness.cli import app\n"
        "assert 'multiply' in CliRunner().invoke(app, ['inspect', 'tiny']).stdout\nassert 'tvm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=120)


def test_a_large_network_is_read_in_twice_its_size(tmp_path: Path) -> None:
    """Memory is what the reader takes beyond the interpreter, measured in a process of its own."""
    import subprocess
    import sys

    size = 100_000_000
    model = network(helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Identity", ["a"], ["y"]))
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 5000)))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5000)))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((5000, 5000), np.float32), "w"))
    file = tmp_path / "large.onnx"
    onnx.save(model, file)
    script = (
        "import resource, sys\nfrom pathlib import Path\nimport onnx.reference\n"
        "from harness.compile.models.sources import OnnxFile\n"
        "peak = lambda whose: resource.getrusage(whose).ru_maxrss * 1024\nbefore = peak(resource.RUSAGE_SELF)\n"
        "OnnxFile('large', Path(sys.argv[1])).onnx_file(Path(sys.argv[2]))\n"
        "print(peak(resource.RUSAGE_CHILDREN) - before)"
    )
    words = [sys.executable, "-c", script, str(file), str(tmp_path)]
    done = subprocess.run(words, check=True, capture_output=True, timeout=120)
    assert int(done.stdout) < 2.1 * size
