"""How reports name a commit, and write a difference."""

from datetime import datetime

import pytest

from harness.base.outcome import Outcome
from harness.compile.compiler.releases import RELEASES
from harness.judge.history.results import Point
from harness.judge.report import words
from harness.judge.report.words import commit_text

HASH = "118b44ca" + "0" * 32
RELEASED_MS = round(datetime.fromisoformat(RELEASES["0.26.0"].released_at).timestamp() * 1000)


def text(tvm: str, date_ms: int) -> str:
    return commit_text(Point(HASH, date_ms, Outcome.OK, tvm=tvm))


def test_a_commit_that_stands_for_a_release_is_named_by_the_release() -> None:
    assert text("0.26.0", RELEASED_MS) == "TVM 0.26.0"


def test_another_commit_is_named_by_its_hash_and_the_tvm_that_was_measured_there() -> None:
    assert text("0.26.0", RELEASED_MS + 1000) == "TVM 0.26.0 (118b44ca)"
    assert text("0.27.0.post1", RELEASED_MS) == "TVM 0.27.0.post1 (118b44ca)"
    assert text("", RELEASED_MS) == "118b44ca"


@pytest.mark.parametrize(
    ("ms", "text"), [(0.0, "0 ms"), (-0.0, "0 ms"), (4e-17, "0 ms"), (-0.01, "-0.01 ms"), (1.234567, "+1.235 ms")]
)
def test_a_difference_has_a_sign_unless_it_is_nothing(ms: float, text: str) -> None:
    assert words.difference(ms) == text
