"""What is kept is made once, and again if it was damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.tools.shared.kept_file import keep_file


@pytest.mark.parametrize("spoil", ["file", "hash", "both", "gone"])
def test_a_file_that_is_not_what_was_kept_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: str
) -> None:
    file, made = tmp_path / "models" / "net.onnx", []

    def make() -> bytes:
        made.append(1)
        return b"content"

    assert [keep_file(file, make) for _ in range(2)] == [file] * 2
    assert len(made) == 1
    if spoil == "gone":
        file.unlink()
    if spoil in ("file", "both"):
        file.write_bytes(b"c0ntent")
    if spoil in ("hash", "both"):
        file.with_suffix(".json").write_text("[" if spoil == "hash" else '"0"')
    assert keep_file(file, make).read_bytes() == b"content"
    assert len(made) == 2
    assert keep_file(file, make) == file
    assert len(made) == 2
    assert ("was damaged in the store" in caplog.text) == (spoil in ("file", "both"))
