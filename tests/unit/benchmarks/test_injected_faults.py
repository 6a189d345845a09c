"""Faults that are put into networks, and what the judge makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from benchmarks.injected_faults import FAULTS, Trial, main, report, trials
from benchmarks.known_networks import ODD, known_networks


def tried(name: str, depths: int = 8, together: int = 1) -> list[Trial]:
    (network,) = known_networks([name])
    return list(trials(network, depths, together))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("rounded_inside", "rounded down in place of to the nearest"),
        ("quantised_inside", "rounded down in place of to the nearest"),
        ("masked_attention", "softmax along another axis"),
        ("sliced", "slice off by one place"),
        ("labels", "two channels swapped"),
        ("scores_beside_boxes", "launch dropped"),
        ("quantised_inside", "weights off by 1 %"),
    ],
)
def test_the_judge_finds_each_kind_of_fault(name: str, fault: str) -> None:
    found = [trial for trial in tried(name, together=0) if trial.faults == [fault]]
    assert found
    assert all(trial.visible and trial.caught for trial in found)


def test_scores_beside_boxes_that_are_a_little_off_need_a_tolerance_of_their_own() -> None:
    trials_of_scores = tried("scores_beside_boxes", together=0)
    assert any(trial.caught and not trial.caught_as_a_whole for trial in trials_of_scores)
    assert not any(trial.caught_as_a_whole and not trial.caught for trial in trials_of_scores)


def test_several_faults_are_at_places_of_their_own() -> None:
    several = [trial for trial in tried("quantised_inside", together=3) if len(trial.faults) > 1]
    assert {len(trial.faults) for trial in several} <= {2, 3, 4, 5}
    assert all(len(set(trial.places)) == len(trial.faults) == len(set(trial.faults)) for trial in several)
    assert set().union(*(trial.faults for trial in several)) <= set(FAULTS)


def test_a_file_is_a_network_like_any_other(tmp_path: Path) -> None:
    onnx.save(ODD["sliced"](), tmp_path / "mine.onnx")
    text = "\n".join(report(tried(str(tmp_path / "mine.onnx"), depths=1)))
    assert "| mine | " in text
    assert "| faults together | tried |" in text


def test_half_precision_allows_more_and_still_finds_a_launch_that_is_dropped() -> None:
    (network,) = known_networks(["masked_attention"])
    single, half = (list(trials(network, 8, 0, precision)) for precision in ("float32", "float16"))
    dropped = [trial for trial in half if trial.faults == ["launch dropped"]]
    assert dropped
    assert all(trial.caught for trial in dropped)
    assert sum(trial.caught for trial in half) < sum(trial.caught for trial in single)


def test_in_half_precision_a_fault_counts_that_changes_more_than_rounding_to_half_does() -> None:
    (network,) = known_networks(["masked_attention"])
    single, half = (list(trials(network, 8, 0, precision)) for precision in ("float32", "float16"))
    stored = [trial for trial in half if trial.faults == ["result stored in half precision"]]
    assert stored
    assert not any(trial.visible for trial in stored)
    assert all(2**10 * few.noise < many.noise < 2**12 * few.noise for few, many in zip(single, half, strict=True))


def test_a_convolution_of_unknown_shape_and_an_epsilon_of_one_number_have_faults(tmp_path: Path) -> None:
    shape, epsilon = np.array([1, 2, 8, 8]), np.array([1e-5], np.float32)
    nodes = [
        helper.make_node("Compress", ["shape", "all"], ["same"], axis=0),
        helper.make_node("Reshape", ["x", "same"], ["image"]),
        helper.make_node("Conv", ["image", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "epsilon"], ["y"]),
    ]
    weights = {"shape": shape, "all": np.ones(4, bool), "w": np.ones((2, 2, 3, 3), np.float32), "epsilon": epsilon}
    values = [helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", [128]), ("y", None))]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "unknown", values[:1], values[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "unknown.onnx")
    faults = {trial.faults[0] for trial in tried(str(tmp_path / "unknown.onnx"), together=0)}
    assert {"convolution padded by reflection", "epsilon times 100"} <= faults


def test_a_network_that_onnxruntime_lacks_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind, domain in (("Relu", ""), ("Mystery", "mine")):
        ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
        graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], domain=domain)], kind, ends[:1], ends[1:])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / f"{kind}.onnx")
    files = [str(tmp_path / f"{kind}.onnx") for kind in ("Mystery", "Relu")]
    monkeypatch.setattr("sys.argv", ["injected_faults", *files, "--depths", "1", "--together", "0"])
    main()
    printed = capsys.readouterr()
    assert "Mystery: left out, onnxruntime" in printed.err
    assert "| Relu |" in printed.out
