"""The pictures of README and docs show the pages as they are."""

from __future__ import annotations

from benchmarks.pictures import IMAGES, SOURCES, digest


def test_the_pictures_are_as_new_as_what_draws_the_pages() -> None:
    assert SOURCES.read_text("utf-8").strip() == digest(), "python -m benchmarks.pictures"


def test_every_picture_that_the_command_draws_is_there() -> None:
    drawn = {
        "page",
        "charts",
        "findings",
        "report-run",
        "report-gate",
        "report-wrong",
        "report-suite",
        "roofline",
        "history-kernels",
    }
    assert {file.stem for file in IMAGES.glob("*.png")} >= drawn
