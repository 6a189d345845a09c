"""The file of schedules: read safely, written to be reviewed, and refused by name where it does not belong."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_schedules import ORIGIN, PHONE, TRACE, a_schedule
from hypothesis import given
from hypothesis import strategies as st

from device_runner.failures import DiskFull
from harness.base.failures import UsageError
from harness.compile.schedules import database
from harness.compile.schedules.apply import decisions_of, place_of
from harness.compile.schedules.database import Schedules
from harness.compile.schedules.trace import BadTrace, check


def test_what_is_written_reads_back_and_comes_in_the_same_order(tmp_path: Path) -> None:
    records = [a_schedule("f" * 16), a_schedule("a" * 16, "texture"), a_schedule("a" * 16)]
    Schedules(ORIGIN, tuple(records)).write(tmp_path / "one")
    Schedules(ORIGIN, tuple(reversed(records))).write(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    found = database.read(tmp_path / "one")
    assert found.origin == ORIGIN
    assert found.of("opencl") == {"f" * 16: records[0], "a" * 16: records[2]}
    assert found.of("texture") == {"a" * 16: records[1]}


def edited(text: str, at: int, **changes: Any) -> str:
    lines = text.splitlines()
    lines[at] = json.dumps({**json.loads(lines[at]), **changes})
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("line", "changes", "says"),
    [
        (0, {"schema": 2}, ":1: "),
        (0, {"pickled": "gASV"}, "pickled"),
        (1, {"task": "../../etc"}, ":2: not a schedule of adreno-bench (task"),
        (1, {"path": "clml"}, "path"),
        (1, {"ms": -1}, "ms"),
        (1, {"name": "a b"}, "name"),
        (1, {"trace": "gASV"}, "trace"),
        (1, {"trace": [[["Annotate", ["b0", 1], ["pragma_import_c"], []]], []]}, "pragma_import_c"),
        (1, {"trace": [[["TransformLayout", ["b0"], [0], []]], []]}, "TransformLayout"),
    ],
)
def test_a_file_that_was_edited_by_hand_is_refused_with_its_line(
    tmp_path: Path, line: int, changes: dict[str, Any], says: str
) -> None:
    file = tmp_path / "schedules.jsonl"
    file.write_text(edited(Schedules(ORIGIN, (a_schedule(),)).text, line, **changes))
    with pytest.raises(UsageError) as refused:
        database.read(file)
    assert str(file) in refused.value.message
    assert says in refused.value.message


def test_a_task_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "schedules.jsonl"
    text = Schedules(ORIGIN, (a_schedule(),)).text
    file.write_text(text + text.splitlines()[1])
    with pytest.raises(UsageError, match=r"3: fused_conv2d on opencl has a schedule already"):
        database.read(file)


@pytest.mark.parametrize("content", [b"", b"\x80\x04\x95", b"[" * 100_000, b"{}\n"])
def test_what_is_no_file_of_schedules_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "schedules.jsonl"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="schedule"):
        database.read(file)
    with pytest.raises(UsageError, match="a folder, not a file"):
        database.read(tmp_path)
    with pytest.raises(UsageError, match="there is no file"):
        database.read(tmp_path / "absent")


def test_the_limit_that_differs_is_named() -> None:
    database.require_limits(Path("f"), Schedules(ORIGIN, ()), PHONE)
    with pytest.raises(UsageError, match=r"image2d_max_height 16384 \(Adreno 750\), and PoCL has 8192"):
        database.require_limits(Path("f"), Schedules(ORIGIN, ()), replace(PHONE, gpu="PoCL", image2d_max_height=8192))


def test_a_device_with_smaller_work_groups_is_not_given_schedules_of_larger_ones() -> None:
    large, small = replace(PHONE, work_group_items=1024), replace(PHONE, work_group_items=128, gpu="Mali")
    limits = {"work_group_items": 1024}
    found = Schedules(ORIGIN.model_copy(update=limits), ())
    database.require_limits(Path("f"), found, large)
    with pytest.raises(UsageError, match=r"may need 1024 work-items in a group \(Adreno 750\), and Mali has 128"):
        database.require_limits(Path("f"), found, small)


def test_what_is_kept_of_a_trace_across_releases_is_what_was_decided() -> None:
    finish = [["EnterPostproc", [], [], []], ["SampleCategorical", [], [[1, 2], [0.5, 0.5]], ["v9"]]]
    instructions, decisions = TRACE
    assert decisions_of([[*instructions, *finish], [[7, 1], *decisions]]) == [[4, 16]]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("fused_conv2d3_add2_relu2", "fused_conv2d_add_relu", True),
        ("max_pool2d1", "max_pool2d", True),
        ("fused_conv2d_add_relu", "fused_conv2d_add", False),
    ],
)
def test_functions_are_alike_whatever_their_numbers(one: str, other: str, alike: bool) -> None:
    assert (place_of(one, ["float32[1]"]) == place_of(other, ["float32[1]"])) is alike
    assert place_of(one, ["float32[1]"]) != place_of(one, ["float32[1] texture"])


def test_a_file_that_changed_since_it_was_planned_is_not_built_with(tmp_path: Path) -> None:
    file = tmp_path / "schedules.jsonl"
    Schedules(ORIGIN, (a_schedule(),)).write(file)
    planned = database.read(file).sha256
    assert database.read_as(file, planned).records == (a_schedule(),)
    Schedules(ORIGIN, (a_schedule(ms=2.0),)).write(file)
    with pytest.raises(UsageError, match="was changed while this ran"):
        database.read_as(file, planned)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=12,
)


@given(JSON, JSON)
def test_anything_else_in_a_trace_is_refused_and_never_an_error_of_ours(instruction: Any, decision: Any) -> None:
    assert check(TRACE) == TRACE
    for trace in (instruction, [[instruction], []], [TRACE[0], [decision]]):
        try:
            check(trace)
        except BadTrace:
            continue
        assert trace[0][0][0] == "GetSBlock"  # a decision that happens to be one
        assert 0 <= decision[0] < len(TRACE[0])


def test_a_trace_is_as_deep_and_long_as_a_schedule_at_most() -> None:
    deep: list[Any] = []
    for _ in range(50):
        deep = [deep]
    with pytest.raises(BadTrace, match="deeper"):
        check([[["Bind", deep, [], []]], []])
    with pytest.raises(BadTrace, match="instructions"):
        check([TRACE[0] * 1000, []])


def test_a_place_that_cannot_be_written_is_told_and_a_full_disk_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the schedules"):
        Schedules(ORIGIN, ()).write(tmp_path / "file" / "schedules.jsonl")
    Schedules(ORIGIN, (a_schedule(),)).write(tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(database, "write_whole", full)
    with pytest.raises(DiskFull):
        Schedules(ORIGIN, ()).write(tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == before
