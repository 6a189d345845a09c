"""Integer inputs are held against the tables that they index, as far as the graph says, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.base.failures import ModelError
from harness.base.model import Distribution
from harness.compile.models.index_ranges import index_ranges, usual_inputs
from harness.compile.models.sources import OnnxFile
from harness.tools.labelled.data import LabelledFile

ROWS = 50


def network(nodes: Sequence[Any], ids: Sequence[Any] = (1, 8), **weights: Any) -> Any:
    """A network whose only input is `ids`, and whose output is `y`."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ids)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def node(kind: str, reads: str, makes: str = "y", **attributes: Any) -> Any:
    return helper.make_node(kind, reads.split(), makes.split(), name=kind.lower(), **attributes)


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def gather(*before: Any, reads: str = "ids") -> Any:
    """A table of 50 rows, indexed by what comes of `ids`."""
    return network([*before, node("Gather", f"table {reads}")], table=floats(ROWS, 4))


def saved(folder: Path, model: Any) -> Path:
    file = folder / "gather.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def of(folder: Path, model: Any, **options: Any) -> OnnxFile:
    return OnnxFile("gather", saved(folder, model), **options)


@pytest.mark.parametrize(
    ("model", "operator", "extents"),
    [
        (gather(), "Gather gather", (ROWS,)),
        (network([node("Gather", "table ids", axis=-1)], table=floats(4, 6)), "Gather gather", (6,)),
        (network([node("GatherElements", "table ids", axis=1)], table=floats(1, 9)), "GatherElements", (9,)),
        (network([node("GatherND", "table ids")], (5, 2), table=floats(3, 7)), "GatherND", (3, 7)),
        (network([node("GatherND", "table ids", batch_dims=1)], (3, 1), table=floats(3, 7)), "GatherND", (7,)),
        (network([node("ScatterElements", "t ids u")], t=floats(9, 8), u=floats(1, 8)), "ScatterElements", (9,)),
        (network([node("ScatterND", "t ids u")], (4, 1), t=floats(8), u=floats(4)), "ScatterND", (8,)),
        (network([node("Slice", "t s e ids")], (1,), t=floats(2, 3), s=np.array([0]), e=np.array([1])), "Slice", (2,)),
        (network([node("OneHot", "ids d v")], d=np.array(12), v=floats(2)), "OneHot", (12,)),
    ],
)  # fmt: skip
def test_the_operator_says_what_it_takes(model: Any, operator: str, extents: tuple[int, ...]) -> None:
    (found,) = index_ranges(model)
    assert (found.input, found.extents) == ("ids", extents)
    assert found.operator.startswith(operator)


@pytest.mark.parametrize(
    "before",
    [
        [node("Cast", "ids", "a", to=TensorProto.INT32), node("Unsqueeze", "a axes", "b")],
        [node("Reshape", "ids shape", "a"), node("Identity", "a", "b")],
        [node("Transpose", "ids", "a"), node("Flatten", "a", "b")],
        [node("Concat", "ids ids2", "b", axis=0)],
    ],
)
def test_an_input_is_followed_where_its_elements_are_handed_on(before: list[Any]) -> None:
    weights: dict[str, Any] = {"table": floats(ROWS, 4), "axes": np.array([0]), "shape": np.array([8, 1])}
    model = network([*before, node("Gather", "table b")], **weights, ids2=np.ones((1, 8), np.int64))
    assert [one.extents for one in index_ranges(model)] == [(ROWS,)]


@pytest.mark.parametrize(
    "before",
    [
        [node("Add", "ids one", "b")],
        [node("Slice", "ids one two one", "b")],
        [node("Cast", "ids", "a", to=TensorProto.FLOAT), node("Cast", "a", "b", to=TensorProto.INT64)],
    ],
)
def test_what_is_computed_on_the_way_is_left_to_the_reference(before: list[Any]) -> None:
    weights: dict[str, Any] = {"table": floats(ROWS, 4), "one": np.array([1]), "two": np.array([2])}
    assert index_ranges(network([*before, node("Gather", "table b")], **weights)) == ()


def test_columns_that_differ_are_not_followed_to_other_places() -> None:
    before = [node("Transpose", "ids", "a"), node("GatherND", "table a")]
    assert index_ranges(network(before, (2, 2), table=floats(3, 7))) == ()
    assert len(index_ranges(network(before, (2, 2), table=floats(3, 3)))) == 1


def test_a_distribution_that_goes_beyond_the_table_is_refused_with_one_that_fits(tmp_path: Path) -> None:
    model = of(tmp_path, gather(), inputs={"ids": Distribution.parse("integers(0, 100000)")})
    with pytest.raises(ModelError) as caught:
        model.onnx_file(tmp_path)
    said = (
        "the input 'ids' is drawn from integers(0, 100000), but Gather gather takes -50 to 49 (an axis of 50 elements)"
    )
    assert caught.value.message == said
    assert "--input 'ids=integers(0, 49)'" in caught.value.hint


@pytest.mark.parametrize("text", ["integers(-50, 49)", "integers(7, 8)", "constant(49)"])
def test_what_fits_is_taken(tmp_path: Path, text: str) -> None:
    drawn = {"ids": Distribution.parse(text)}
    model = of(tmp_path, gather(), inputs=drawn)
    model.onnx_file(tmp_path)
    assert model.input_values(tmp_path) == drawn


def test_without_a_word_indices_reach_the_whole_of_the_smallest_table(tmp_path: Path) -> None:
    nodes = [node("Gather", "table ids", "a"), node("Gather", "small ids", "b"), node("Add", "a b")]
    model = of(tmp_path, network(nodes, table=floats(ROWS, 4), small=floats(1, 4)))
    assert model.input_values(tmp_path) == {"ids": Distribution.parse("integers(0, 0)")}
    assert model.changes(tmp_path) == ("drew ids from integers(0, 0)",)


def test_an_index_beyond_the_depth_of_a_one_hot_is_legal_and_not_drawn() -> None:
    ranges = index_ranges(network([node("OneHot", "ids d v")], d=np.array(12), v=floats(2)))
    assert usual_inputs(ranges) == {"ids": Distribution.parse("integers(0, 11)")}
    assert [one.strict for one in ranges] == [False]


@pytest.mark.parametrize("wrong", [50, -51])
def test_an_array_of_a_file_is_held_against_the_table(tmp_path: Path, wrong: int) -> None:
    ids = np.zeros((1, 8), np.int64)
    ids[0, 3] = wrong
    np.savez(tmp_path / "ids.npz", ids=ids)
    model = of(tmp_path, gather(), inputs=tmp_path / "ids.npz")
    with pytest.raises(
        ModelError, match=rf"ids.npz: 'ids' holds {wrong} at \[0, 3\], but Gather gather takes -50 to 49"
    ):
        model.onnx_file(tmp_path)


def test_each_column_of_an_array_is_held_against_its_own_axis(tmp_path: Path) -> None:
    np.savez(tmp_path / "ids.npz", ids=np.array([[2, 6], [-3, 7]]))
    nodes = [node("GatherND", "table ids")]
    model = of(tmp_path, network(nodes, (2, 2), table=floats(3, 7)), inputs=tmp_path / "ids.npz")
    with pytest.raises(ModelError, match=r"holds 7 at \[1, 1\], but GatherND gathernd takes -7 to 6"):
        model.onnx_file(tmp_path)


def test_labelled_data_are_held_against_the_table(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", ids=np.full((2, 8), ROWS), labels=np.array([0, 1]))
    model = of(tmp_path, gather(), labelled=LabelledFile(tmp_path / "data.npz"))
    with pytest.raises(ModelError, match=r"data.npz: 'ids' holds 50 at \[0, 0\]"):
        model.onnx_file(tmp_path)
