"""A person's own function that scores outputs: whatever it does wrong is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.base.failures import ModelError
from harness.tools.labelled.score import LARGEST_BYTES, digest_of, load_function, outputs_of, score_of

OUTPUTS = [[np.ones((1, 4))], [np.zeros((1, 4))]]
LABELS = np.zeros((2, 4))


def place(folder: Path, body: str) -> str:
    (folder / "metrics.py").write_text(f"def score(outputs, labels):\n    {body}\n")
    return f"{folder / 'metrics.py'}:score"


def test_a_function_gets_outputs_of_each_batch_and_labels_and_returns_a_name_and_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = (
        "print('hello'); return 'near', sum(abs(boxes - truth).max() < 1 for (boxes,), truth in zip(outputs, labels))"
    )
    assert score_of(place(tmp_path, body), OUTPUTS, LABELS) == ("near", 1.0)
    assert capsys.readouterr() == ("", "hello\n"), "standard output belongs to the result"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return outputs[7]", "failed: IndexError: list index out of range"),
        ("raise KeyError", "failed: KeyError"),
        ("raise ValueError('one\\n  two')", "failed: ValueError: one two"),
        ("return 0.5", "returned 0.5, and not a name and a number"),
        ("return 'mAP', 'good'", "returned ('mAP', 'good'), and not a name and a number"),
        ("return 'mAP', float('nan')", "returned ('mAP', nan), and not a name and a number"),
        ("return '', 1.0", "returned ('', 1.0), and not a name and a number"),
        ("return [1.0] * 999", "..., and not a name and a number"),
    ],
)
def test_whatever_a_function_does_wrong_is_one_line(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(ModelError) as refused:
        score_of(place(tmp_path, body), OUTPUTS, LABELS)
    assert message in refused.value.message
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 200 + len(str(tmp_path))


def test_a_function_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no_such_module:score cannot be loaded: ModuleNotFoundError") as refused:
        load_function("no_such_module:score")
    assert "PYTHONPATH" in refused.value.hint
    with pytest.raises(ModelError, match="math has no function 'nothere'"):
        load_function("math:nothere")
    with pytest.raises(ModelError, match="cannot be loaded: SyntaxError"):
        load_function(place(tmp_path, "return ("))


def test_a_function_of_a_file_that_changed_is_another_one(tmp_path: Path) -> None:
    first = digest_of(place(tmp_path, "return 'a', 1"))
    assert digest_of(place(tmp_path, "return 'a', 2")) != first
    assert digest_of("metrics:score") == "metrics:score"


def test_outputs_are_asked_for_batch_by_batch_and_refused_where_they_fill_the_memory() -> None:
    asked = []

    def ask(rows: Any) -> list[Any]:
        asked.append(len(rows))
        return [rows]

    assert [len(batch) for (batch,) in outputs_of(ask, np.zeros((6, 2)), 2)] == [2, 2, 2]
    huge = np.broadcast_to(np.zeros(1, np.float32), (1, LARGEST_BYTES // 8))
    with pytest.raises(ModelError, match=r"the outputs for 6 labelled inputs take \d+ bytes") as refused:
        outputs_of(lambda _: [huge], np.zeros((6, 2)), 1)
    assert refused.value.hint == "label 2 inputs at most"
