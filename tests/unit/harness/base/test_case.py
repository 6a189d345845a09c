"""Case ids are stable text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.case import Case, Precision, Tuning

NAMES = st.from_regex(r"[a-z0-9_]{1,12}", fullmatch=True)


@given(NAMES, NAMES, st.sampled_from(Precision), st.sampled_from(Tuning))
def test_an_id_reads_back_as_its_case(model: str, path: str, precision: Precision, tuning: Tuning) -> None:
    case = Case(model, path, precision, tuning)
    assert Case.parse(case.id) == case
    assert case.matches(f"{model}-*")


@pytest.mark.parametrize("text", ["", "resnet18", "a-b-float32", "a-b-float64-untuned", "a-b-float32-untuned-x"])
def test_other_text_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match="one reads mobilenet_v1-texture-float32-untuned"):
        Case.parse(text)
