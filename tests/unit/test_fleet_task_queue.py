"""Who gets which case: without a process, a clock or a device."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harness.fleet.task_queue import MOST_LOSSES, Board


def a_board(**identities: str) -> Board[str]:
    board: Board[str] = Board()
    for device, identity in identities.items():
        board.join(device, identity, lambda: ["x", "y", "z"])
    return board


def assigned(board: Board[str], device: str) -> str | None:
    task = board.assign(device, lambda _: True)
    return task.work if task else None


def test_devices_of_one_identity_share_its_cases() -> None:
    board = a_board(a="I", b="I")
    assert [assigned(board, device) for device in "ab"] == ["x", "y"]
    board.finish("a")
    assert [assigned(board, "a"), board.idle] == ["z", []]
    board.finish("b")
    assert assigned(board, "b") is None
    board.finish("a")
    assert board.done


def test_each_identity_gets_every_case() -> None:
    board = a_board(a="I", b="J")
    for device in "ab":
        for case in "xyz":
            assert assigned(board, device) == case
            board.finish(device)
    assert board.done


def test_a_device_takes_the_first_case_that_is_built() -> None:
    board = a_board(a="I")
    task = board.assign("a", lambda case: case == "y")
    assert task
    assert task.work == "y"
    assert board.idle == []


def test_the_case_of_a_lost_device_goes_next_to_another_of_its_identity() -> None:
    board = a_board(a="I", b="I", c="J")
    assert assigned(board, "a") == "x"
    assert board.lose("a") is None
    assert [assigned(board, device) for device in "cb"] == ["x", "x"]
    assert not board.has_peer("b")


def test_a_case_that_may_kill_devices_is_not_tried_on_all_of_them() -> None:
    board = a_board(a="I", b="I", c="I")
    for device, ended in zip("ab", [None, "x"], strict=True):
        assert assigned(board, device) == "x"
        task = board.lose(device)
        assert (task.work if task else None) == ended
    assert MOST_LOSSES == 2
    assert assigned(board, "c") == "y"


def test_what_waits_for_nobody_is_ended() -> None:
    board = a_board(a="I", b="J")
    assert assigned(board, "a") == "x"
    board.lose("a")
    assert [task.work for task in board.strand()] == ["x", "y", "z"]
    assert list(board.strand()) == []
    assert not board.done


def test_a_device_that_comes_back_goes_on() -> None:
    board = a_board(a="I", b="I")
    board.lose("a")
    board.join("a", "I", lambda: ["never asked for"])
    assert assigned(board, "a") == "x"


EVENT = st.tuples(st.sampled_from(["assign", "finish", "lose", "join", "strand"]), st.sampled_from("abcd"))


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("IJ"), min_size=1), st.lists(EVENT))
def test_whatever_happens_every_task_ends_exactly_once(
    identities: dict[str, str], events: list[tuple[str, str]]
) -> None:
    board = a_board(**identities)
    ended: list[tuple[str, str]] = []
    lost: set[str] = set()

    def act(what: str, device: str) -> None:
        if what == "assign" and device in board.idle:
            board.assign(device, lambda _: True)
        elif what == "finish" and board.running(device):
            task = board.finish(device)
            ended.append((task.identity, task.work))
        elif what == "lose" and device in identities and device not in lost:
            lost.add(device)
            if gone := board.lose(device):
                ended.append((gone.identity, gone.work))
        elif what == "join" and device in lost:
            lost.discard(device)
            board.join(device, identities[device], list)
        elif what == "strand":
            ended.extend((task.identity, task.work) for task in board.strand())

    for event in events:
        act(*event)
    while not board.done:  # let whoever is left finish
        for device in "abcd":
            act("assign", device)
            act("finish", device)
        act("strand", "")
    wanted = {(identity, case) for identity in set(identities.values()) for case in "xyz"}
    assert Counter(ended) == Counter(wanted)
