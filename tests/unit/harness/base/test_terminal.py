"""What a terminal or a pipe can write."""

from __future__ import annotations

import io

from harness.base.terminal import write


def test_what_has_ascii_alone_gets_other_signs_of_the_same_width() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write("\u00b1 3 %\u2026 \u00e9", stream)
    stream.seek(0)
    assert stream.read() == "~ 3 %~ ?\n"


def test_states_and_strips_can_be_told_apart_in_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write("✓ right ✗ wrong ▁▄█ 36 °C", stream)
    stream.seek(0)
    assert stream.read() == "+ right x wrong .=# 36  C\n"
