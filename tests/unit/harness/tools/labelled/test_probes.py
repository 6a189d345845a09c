"""How many labelled inputs a path gets right, and when that is too few."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.failures import ModelError
from harness.compile.models.spec import InputSpec
from harness.tools.labelled.data import best_classes, load_labelled
from harness.tools.labelled.probes import least_right, top_one
from harness.tools.labelled.truth import require_classes, write_answers
from harness.tools.zoo.models import ZOO

IMAGES = InputSpec("images", (2, 1, 3, 3))


def labelled(file: Path, count: int = 6, **others: object) -> Path:
    arrays = {"images": np.zeros((count, 1, 3, 3), np.float32), "labels": np.zeros(count, np.int64), **others}
    np.savez(file, **{name: array for name, array in arrays.items() if array is not None})  # type: ignore[arg-type]
    return file


def test_inputs_are_classified_batch_by_batch() -> None:
    scores = np.random.default_rng(0).standard_normal((6, 10))
    asked = []

    def ask(rows: Any) -> list[Any]:
        asked.append(len(rows))
        return [scores[rows.ravel()]]

    best = best_classes(ask, np.arange(6), 2)
    np.testing.assert_array_equal(best[:, 0], scores.argmax(axis=1))
    assert best.shape == (6, 5)
    assert all(set(row) == set(of.argsort()[-5:]) for row, of in zip(best.tolist(), scores, strict=True))
    assert asked == [2, 2, 2]


def test_scores_that_are_not_one_row_for_each_input_are_refused() -> None:
    with pytest.raises(ModelError, match=r"shape \[1, 10\], and labelled data need 2 rows"):
        best_classes(lambda _: [np.zeros((1, 10))], np.arange(4), 2)


def test_a_few_answers_that_rounding_costs_are_no_drop_and_many_are() -> None:
    labels = np.arange(360) % 10
    oracle = np.where(np.arange(360) < 4, labels + 1, labels)
    for lost, dropped in ((0, False), (3, False), (20, True)):
        classes = np.where(np.arange(360) < 4 + lost, labels + 1, labels)
        counted = top_one(classes[:, None], labels, oracle[:, None])
        assert (counted.right, counted.oracle_right, counted.alike) == (356 - lost, 356, 360 - lost)
        assert counted.top_five is None, "of one class nobody can say"
        assert bool(counted.complaint) is dropped


def test_the_right_class_may_be_among_the_five_best() -> None:
    best = np.array([[1, 2, 3, 4, 5], [9, 8, 7, 6, 5], [5, 6, 7, 8, 9]])
    counted = top_one(best, np.array([1, 5, 0]), best[::-1])
    assert (counted.right, counted.top_five, counted.oracle_top_five) == (1, 2, 1)


@given(st.integers(1, 2000), st.data())
def test_the_oracle_itself_never_drops(inputs: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, inputs))
    assert 0 <= least_right(right, inputs) <= right


def test_labelled_data_are_read(tmp_path: Path) -> None:
    data = load_labelled(labelled(tmp_path / "a.npz"), [IMAGES])
    assert (data.inputs.shape, data.labels.shape) == ((6, 1, 3, 3), (6,))


@pytest.mark.parametrize(
    ("count", "others", "specs", "says"),
    [
        (5, {}, [IMAGES], "has 5 labels"),
        (0, {}, [IMAGES], "has 0 labels"),
        (6, {"labels": None}, [IMAGES], "no array 'labels'"),
        (6, {"labels": np.zeros((6, 1), np.int64)}, [IMAGES], "has 0 labels"),
        (6, {"labels": np.zeros(6)}, [IMAGES], "'labels' is float64"),
        (6, {"images": np.zeros((4, 1, 3, 3), np.float32)}, [IMAGES], "has 4 inputs and 6 labels"),
        (6, {"images": np.zeros((6, 1, 3, 4), np.float32)}, [IMAGES], "'images' is float32"),
        (6, {}, [IMAGES, IMAGES], "labelled data are for one"),
    ],
)
def test_labelled_data_that_do_not_fit_are_refused(
    tmp_path: Path, count: int, others: dict[str, object], specs: list[InputSpec], says: str
) -> None:
    with pytest.raises(ModelError, match=says):
        load_labelled(labelled(tmp_path / "a.npz", count, **others), specs)


def test_the_digits_network_has_labelled_data_that_fit_it() -> None:
    digits = next(model for model in ZOO if model.name == "digits")
    assert digits.held_out
    data = load_labelled(digits.held_out, [InputSpec("images", (1, 1, 8, 8))])
    assert sorted(set(data.labels.tolist())) == list(range(10))
    assert len(digits.build().to_bytes()) + digits.held_out.stat().st_size < 500_000


def test_labels_of_a_scored_model_are_numbers_of_any_shape(tmp_path: Path) -> None:
    file = labelled(tmp_path / "boxes.npz", labels=np.full((6, 3, 5), -1, np.float32))
    assert load_labelled(file, [IMAGES], scored=True).labels.shape == (6, 3, 5)
    with pytest.raises(ModelError, match="has 0 labels"):
        load_labelled(file, [IMAGES])
    with pytest.raises(ModelError, match="labels' is <U1"):
        load_labelled(labelled(tmp_path / "texts.npz", labels=np.array(["a"] * 6)), [IMAGES], scored=True)


@pytest.mark.parametrize("labels", [[0, 1, 2], [-1, 0, 1]])
def test_a_label_that_no_answer_can_have_is_refused(labels: list[int]) -> None:
    require_classes(np.array([0, 1, 1]), 2)
    with pytest.raises(ModelError, match=r"1 label of 3, such as (2|-1), cannot be right: the model has 2 classes"):
        require_classes(np.array(labels), 2)


def test_a_complaint_about_labelled_data_names_their_file(tmp_path: Path) -> None:
    file = labelled(tmp_path / "held-out.npz", labels=np.full(6, 9))
    with pytest.raises(ModelError, match=rf"^{file}: 6 labels of 6, such as 9, .*the model has 4 classes"):
        write_answers(tmp_path, file, "", [IMAGES], lambda _: [np.zeros((2, 4))])
    with pytest.raises(ModelError, match=rf"^{file}: the first output has the shape \[2\]"):
        write_answers(tmp_path, labelled(file), "", [IMAGES], lambda _: [np.zeros(2)])
