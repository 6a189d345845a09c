"""Who gets which case: without a process, a clock or a device."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.device_queue import MOST_LOSSES, WorkQueue


def a_queue(**identities: str) -> WorkQueue[str]:
    queue: WorkQueue[str] = WorkQueue()
    for device, identity in identities.items():
        queue.join(device, identity, lambda: ["x", "y", "z"])
    return queue


def assigned(queue: WorkQueue[str], device: str) -> str | None:
    task = queue.assign(device, lambda _: True)
    return task.work if task else None


def test_devices_of_one_identity_share_its_cases() -> None:
    queue = a_queue(a="I", b="I")
    assert [assigned(queue, device) for device in "ab"] == ["x", "y"]
    queue.finish("a")
    assert assigned(queue, "a") == "z"
    assert queue.devices == ["a", "b"]
    queue.finish("b")
    assert assigned(queue, "b") is None
    queue.finish("a")
    assert queue.done


def test_each_identity_gets_every_case() -> None:
    queue = a_queue(a="I", b="J")
    for device in "ab":
        for case in "xyz":
            assert assigned(queue, device) == case
            queue.finish(device)
    assert queue.done


def test_a_device_takes_the_first_case_that_is_built() -> None:
    queue = a_queue(a="I")
    task = queue.assign("a", lambda case: case == "y")
    assert task
    assert task.work == "y"
    assert queue.running("a") is task


def test_the_case_of_a_lost_device_goes_next_to_another_of_its_identity() -> None:
    queue = a_queue(a="I", b="I", c="J")
    assert assigned(queue, "a") == "x"
    assert queue.lose("a") is None
    assert [assigned(queue, device) for device in "cb"] == ["x", "x"]
    assert not queue.has_peer("b")


def test_a_case_that_may_kill_devices_is_not_tried_on_all_of_them() -> None:
    queue = a_queue(a="I", b="I", c="I")
    for device, ended in zip("ab", [None, "x"], strict=True):
        assert assigned(queue, device) == "x"
        task = queue.lose(device)
        assert (task.work if task else None) == ended
    assert MOST_LOSSES == 2
    assert assigned(queue, "c") == "y"


def test_what_waits_for_nobody_is_ended() -> None:
    queue = a_queue(a="I", b="J")
    assert assigned(queue, "a") == "x"
    queue.lose("a", "unplugged")
    assert [task.work for task, _ in queue.strand()] == ["x", "y", "z"]
    assert list(queue.strand()) == []
    assert not queue.done


def test_a_device_that_comes_back_goes_on() -> None:
    queue = a_queue(a="I", b="I")
    queue.lose("a")
    queue.join("a", "I", lambda: ["never asked for"])
    assert assigned(queue, "a") == "x"


EVENT = st.tuples(st.sampled_from(["assign", "finish", "lose", "join", "strand"]), st.sampled_from("abcd"))


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("IJ"), min_size=1), st.lists(EVENT))
def test_whatever_happens_every_task_ends_exactly_once(
    identities: dict[str, str], events: list[tuple[str, str]]
) -> None:
    queue = a_queue(**identities)
    ended: list[tuple[str, str]] = []
    lost: set[str] = set()

    def act(what: str, device: str) -> None:
        if what == "assign" and device in queue.devices and not queue.running(device):
            queue.assign(device, lambda _: True)
        elif what == "finish" and queue.running(device):
            task = queue.finish(device)
            assert task
            ended.append((task.identity, task.work))
        elif what == "lose" and device in identities and device not in lost:
            lost.add(device)
            if gone := queue.lose(device):
                ended.append((gone.identity, gone.work))
        elif what == "join" and device in lost:
            lost.discard(device)
            queue.join(device, identities[device], list)
        elif what == "strand":
            ended.extend((task.identity, task.work) for task, _ in queue.strand())

    for event in events:
        act(*event)
    while not queue.done:  # let whoever is left finish
        for device in "abcd":
            act("assign", device)
            act("finish", device)
        act("strand", "")
    wanted = {(identity, case) for identity in set(identities.values()) for case in "xyz"}
    assert Counter(ended) == Counter(wanted)
