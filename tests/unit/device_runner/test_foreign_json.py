"""JSON of others is read within bounds."""

from __future__ import annotations

import pytest

from device_runner import foreign_json
from device_runner.foreign_json import read_json


def test_what_others_wrote_is_read() -> None:
    assert read_json(b'{"a": [1, "\xc3\xa4"]}') == read_json('{"a": [1, "\u00e4"]}') == {"a": [1, "\u00e4"]}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", "[" * 100_000, '{"a":' * 100_000, "9" * 5000, b"[" + b"0," * foreign_json.MOST_VALUES]
)
def test_what_is_no_json_or_too_much_of_it_is_an_error_of_one_kind(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_json(text)
