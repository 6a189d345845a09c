"""`score = "file.py:function"`: a person's own number for labelled data, from the suite to the table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import bench
from small_networks import answers, network

from harness.base.outcome import ExitCode

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

LABELLED = 12
SUITE = """
paths = ["opencl", "texture"]
budget_s = 0.1
samples = 10
[[models]]
onnx = "models/net.onnx"
labelled = "models/labelled.npz"
score = "metrics.py:closeness"
"""
METRICS = """
print("a metric may print")

def closeness(outputs, labels):
    import numpy as np
    answers = np.concatenate([batch[0] for batch in outputs])
    assert answers.shape == labels.shape, (answers.shape, labels.shape)
    return "closeness", 1 / (1 + float(np.abs(answers - labels).max()))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite in one folder, its network and labels in another, and the function beside the suite."""
    import onnx

    (tmp_path / "models").mkdir()
    kernel = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        onnx.helper.make_node("Relu", ["c"], ["r"]),
        onnx.helper.make_node("Conv", ["r", "v"], ["y"]),
    ]
    second = np.random.default_rng(1).standard_normal((8, 8, 1, 1)).astype(np.float32)
    model = onnx.shape_inference.infer_shapes(network(nodes, {"x": [1, 4, 8, 8]}, w=kernel, v=second))
    onnx.save(model, tmp_path / "models/net.onnx")
    images = np.random.default_rng(2).standard_normal((LABELLED, 4, 8, 8)).astype(np.float32)
    labels = np.concatenate([answers(model, {"x": image[None]})[0] for image in images])
    np.savez(tmp_path / "models/labelled.npz", x=images, labels=labels)
    (tmp_path / "adreno-bench.toml").write_text(SUITE)
    (tmp_path / "metrics.py").write_text(METRICS)
    return tmp_path


def test_the_function_scores_each_path_and_the_oracle(folder: Path, cache: Path) -> None:
    code, out, err = bench(folder, cache, "run")
    assert code == ExitCode.GOOD, out + err
    assert out.splitlines()[0].split()[-1] == "closeness"
    assert "a metric may print" not in out, "standard output belongs to the result"
    code, out, err = bench(folder, cache, "show", "--json")
    scores = [record["parts"]["score"] for record in json.loads(out)]
    assert len(scores) == 2
    for score in scores:
        assert (score["name"], score["inputs"]) == ("closeness", LABELLED)
        assert score["value"] > 0.99
        assert score["oracle"] > 0.99


def test_a_path_that_scores_less_than_the_oracle_is_wrong_though_its_answers_are_right(
    folder: Path, cache: Path
) -> None:
    strict = METRICS.replace("1 / (1 + float(np.abs(answers - labels).max()))", "float((answers == labels).mean())")
    (folder / "metrics.py").write_text(strict)
    code, out, err = bench(folder, cache, "run", "--path", "opencl", "--json")
    assert code == ExitCode.WRONG_OR_BROKEN, out + err
    (record,) = json.loads(out)
    assert (record["outcome"], record["wall_ms"]) == ("wrong-result", [])
    assert "closeness" in record["message"]
    assert record["accuracy"]["max_abs_err"] <= record["accuracy"]["tolerance"], "the rounding of another order of sums"


@pytest.mark.parametrize(
    ("metrics", "code", "said"),
    [
        (
            "def closeness(outputs, labels): return 0.5",
            ExitCode.WRONG_OR_BROKEN,
            "returned 0.5, and not a name and a number",
        ),
        ("def closeness(outputs, labels): return labels[999]", ExitCode.WRONG_OR_BROKEN, "failed: IndexError"),
        ("import nothing_of_this_name", ExitCode.USAGE, "cannot be loaded: ModuleNotFoundError"),
        ("def others(outputs, labels): ...", ExitCode.USAGE, "has no function 'closeness'"),
    ],
)
def test_what_a_function_does_wrong_is_one_line(
    metrics: str, code: ExitCode, said: str, folder: Path, cache: Path
) -> None:
    (folder / "metrics.py").write_text(metrics)
    ended, out, err = bench(folder, cache, "run", "--path", "opencl")
    assert ended == code, out + err
    result = out if code == ExitCode.WRONG_OR_BROKEN else err
    assert sum(said in line for line in result.splitlines()) == 1
    assert "Traceback" not in out + err
