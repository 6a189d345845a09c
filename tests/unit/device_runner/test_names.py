"""What a person probably meant."""

from __future__ import annotations

import pytest

from device_runner.names import shorten, suggestion


def test_the_nearest_word_is_suggested() -> None:
    assert suggestion("textur", iter(["opencl", "texture"])) == "did you mean 'texture'?"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--modle", "--model"),
        ("--paths", "--path"),
        ("--output", "--out"),
        ("--record", "--records"),
        ("gpu", "gpu_c"),
        ("rnu", "run"),
    ],
)
def test_a_slip_of_the_finger_and_the_rest_of_a_word_are_understood(word: str, meant: str) -> None:
    assert suggestion(word, ["--shape", meant]) == f"did you mean {meant!r}?"


@pytest.mark.parametrize("word", ["sample", "samples", "iterations", "threads", "target", "batch", "timeout", "seed"])
def test_another_programs_option_is_not_taken_for_one_of_ours(word: str) -> None:
    options = ["--shape", "--records", "--trust", "--path", "--case", "--tuning", "--device", "--suite", "--input"]
    assert suggestion(f"--{word}", options, otherwise="see", choices=()) == "see "


def test_without_a_near_one_all_are_named() -> None:
    assert suggestion("metal", ["opencl", "texture"]) == "known are opencl, texture"
    assert suggestion("metal", iter(["opencl", "texture"]), otherwise="there are:") == "there are: opencl, texture"


def test_words_that_are_too_many_to_name_are_still_suggested() -> None:
    tags = ["v0.1", "v0.2", "0.26.0"]
    assert suggestion("v0.3", tags, choices=["0.26.0"]) in ("did you mean 'v0.1'?", "did you mean 'v0.2'?")
    assert suggestion("main", tags, choices=["0.26.0"]) == "known are 0.26.0"


def test_of_very_many_names_some_are_listed() -> None:
    hint = suggestion("metal", [f"case{number}" for number in range(1000)])
    assert hint.startswith("known are case0, case1, ")
    assert hint.endswith("case29, 970 more")


def test_names_that_are_too_long_end_in_a_hash_and_stay_different() -> None:
    long = ["a" * 300, "a" * 299 + "b"]
    short = [shorten(name, 120) for name in long]
    assert [len(name) for name in short] == [120, 120]
    assert len(set(short)) == 2
    assert shorten("a" * 120, 120) == "a" * 120
