from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import filelock
import pytest

from device_runner.failures import DeviceBusy
from device_runner.lease import holder_of, lease, queue_length

SERIAL = "192.168.0.5:5555/a b"


@contextmanager
def another_run(folder: Path, *, waits: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the device until its input closes, or waits for it first."""
    script = """
        import sys
        from pathlib import Path
        from device_runner.lease import lease
        with lease(sys.argv[2], Path(sys.argv[1]), timeout_s=30, waiting=lambda line: print(line, flush=True)):
            print("held", flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(folder), SERIAL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert ("waiting" if waits else "held\n") in process.stdout.readline()
        yield process


def test_a_second_run_is_told_who_has_the_device(tmp_path: Path) -> None:
    told: list[str] = []
    with another_run(tmp_path) as other, pytest.raises(DeviceBusy) as caught:  # noqa: SIM117
        with lease(SERIAL, tmp_path, timeout_s=0.05, waiting=told.append):
            pytest.fail("two runs hold one device")
    assert f"process {other.pid} " in caught.value.message
    assert len(told) == 1
    assert f"process {other.pid} " in told[0]


def test_a_second_run_waits_until_the_first_ends(tmp_path: Path) -> None:
    with another_run(tmp_path) as other:
        assert other.stdin
        with lease(SERIAL, tmp_path, timeout_s=30, waiting=lambda _: other.stdin.close()):  # type: ignore[union-attr]
            owner = holder_of(SERIAL, tmp_path)
    assert owner
    assert owner.pid == os.getpid()


def test_a_killed_run_frees_the_device_and_its_note_counts_for_nothing(tmp_path: Path) -> None:
    with another_run(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert holder_of(SERIAL, tmp_path) is None
        with lease(SERIAL, tmp_path, timeout_s=0):
            pass


def test_a_damaged_note_still_says_that_somebody_is_there(tmp_path: Path) -> None:
    with another_run(tmp_path):
        next(tmp_path.glob("*.json")).write_text('{"pid":')
        with pytest.raises(DeviceBusy, match="another run"), lease(SERIAL, tmp_path, timeout_s=0):
            pass


def test_asking_whether_a_device_is_free_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lease(SERIAL, tmp_path, timeout_s=0):
        pass
    with another_run(tmp_path) as other:
        monkeypatch.setattr(filelock.FileLock, "acquire", lambda *_, **__: pytest.fail("it took the lock"))
        holder = holder_of(SERIAL, tmp_path)
        assert holder
        assert holder.pid == other.pid
    assert holder_of(SERIAL, tmp_path) is None


def test_asking_whether_a_device_is_free_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    """Several processes ask all the time, while this one takes it and gives it back."""
    script = """
        import sys
        from pathlib import Path
        from device_runner.lease import holder_of
        seen = set()
        print("asking", flush=True)
        while not Path(sys.argv[1], "stop").exists():
            holder = holder_of(sys.argv[2], Path(sys.argv[1]))
            seen.add(holder.pid if holder else 0)
        print(*sorted(seen))
    """
    with lease(SERIAL, tmp_path, timeout_s=0):
        pass
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), SERIAL]
    askers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        for asker in askers:
            assert asker.stdout
            assert asker.stdout.readline() == "asking\n"
        for _ in range(500):
            with lease(SERIAL, tmp_path, timeout_s=0, waiting=pytest.fail):
                pass
    finally:
        (tmp_path / "stop").touch()
        told = [asker.communicate(timeout=60)[0] for asker in askers]
    assert {pid for line in told for pid in line.split()} <= {"0", str(os.getpid())}


def test_who_held_a_device_before_is_never_taken_for_its_holder(tmp_path: Path) -> None:
    """A killed holder leaves its note, which the next one replaces."""
    with another_run(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    note = next(tmp_path.glob("*.json")).read_text()
    for _ in range(20):
        with lease(SERIAL, tmp_path, timeout_s=0):
            holder = holder_of(SERIAL, tmp_path)
            assert holder
            assert holder.pid == os.getpid()
        next(tmp_path.glob("*.lock")).with_suffix(".json").write_text(note)
        assert holder_of(SERIAL, tmp_path) is None


def test_where_the_kernel_does_not_tell_who_holds_a_file_its_process_has_to_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fcntl, "F_OFD_GETLK")
    with another_run(tmp_path) as other:
        holder = holder_of(SERIAL, tmp_path)
        assert holder
        assert holder.pid == other.pid
        note = next(tmp_path.glob("*.json"))
        note.write_text(json.dumps({**json.loads(note.read_text()), "since": "2001-01-01T00:00:00+00:00"}))
        assert holder_of(SERIAL, tmp_path) is None  # a later process with this number
        other.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert holder_of(SERIAL, tmp_path) is None


def test_a_child_of_the_holder_before_hides_no_holder(tmp_path: Path) -> None:
    """A child that is forked while a lease is held has the holder's files until it runs another program."""
    with lease("virtual", tmp_path, timeout_s=1):
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    try:
        assert holder_of("virtual", tmp_path) is None
        with lease("virtual", tmp_path, timeout_s=1):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            assert holder_of("virtual", tmp_path) is not None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


WAITER = """
    import sys
    from pathlib import Path
    from device_runner.lease import lease
    folder, name = Path(sys.argv[1]), sys.argv[3]
    with lease(sys.argv[2], folder, timeout_s=60, waiting=lambda line: print(line, flush=True)):
        with (folder / "order").open("a") as order:
            order.write(name + " ")
"""


@contextmanager
def queue_of(folder: Path, names: str, ahead: int = 0) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Processes that wait for the device, which is in use, in this order."""
    waiters: dict[str, subprocess.Popen[str]] = {}
    try:
        for name in names:
            command = [sys.executable, "-c", textwrap.dedent(WAITER), str(folder), SERIAL, name]
            waiters[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert heard(waiters[name]).endswith(f"; waiting, place {ahead + len(waiters)} in the queue\n")
        yield waiters
    finally:
        for waiter in waiters.values():
            waiter.send_signal(signal.SIGCONT)
            waiter.kill()
            waiter.communicate()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def order_of(folder: Path) -> str:
    return (folder / "order").read_text().replace(" ", "")


def wait_for(process: subprocess.Popen[str]) -> str:
    """What it said until its end."""
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return said


def test_who_came_first_is_served_first_and_hears_each_change(tmp_path: Path) -> None:
    with another_run(tmp_path) as holder, queue_of(tmp_path, "abcd") as waiters:
        assert queue_length(SERIAL, tmp_path) == 4
        with pytest.raises(DeviceBusy, match=f"by process {holder.pid} .*, and process {waiters['a'].pid} is next"):  # noqa: SIM117
            with lease(SERIAL, tmp_path, timeout_s=0):
                pass
        holder.communicate("", timeout=60)
        for waiter in waiters.values():
            wait_for(waiter)
    assert order_of(tmp_path) == "abcd"
    assert list(tmp_path.glob("*.ticket*")) == []


def test_a_waiter_hears_who_has_the_device_now(tmp_path: Path) -> None:
    with another_run(tmp_path) as first, another_run(tmp_path, waits=True) as second:  # noqa: SIM117
        with queue_of(tmp_path, "a", ahead=1) as waiters:
            first.communicate("", timeout=60)
            line = heard(waiters["a"])
            assert f"process {second.pid} " in line
            assert line.endswith("; waiting, place 1 in the queue\n")
            second.communicate("", timeout=60)
            wait_for(waiters["a"])


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_waiter_that_is_ended_leaves_no_place(tmp_path: Path, end: signal.Signals) -> None:
    with another_run(tmp_path) as holder, queue_of(tmp_path, "abc") as waiters:
        waiters["a"].send_signal(end)
        waiters["a"].wait(timeout=60)
        assert heard(waiters["b"]).endswith("place 1 in the queue\n")
        assert queue_length(SERIAL, tmp_path) == 2
        holder.communicate("", timeout=60)
        for name in "bc":
            wait_for(waiters[name])
    assert order_of(tmp_path) == "bc"
    with lease(SERIAL, tmp_path, timeout_s=0):
        assert list(tmp_path.glob("*.ticket*")) == []


def test_a_waiter_that_is_stopped_delays_nobody_and_keeps_its_place(tmp_path: Path) -> None:
    with another_run(tmp_path) as holder, queue_of(tmp_path, "abc") as waiters:
        waiters["a"].send_signal(signal.SIGSTOP)
        holder.communicate("", timeout=60)
        for name in "bc":
            wait_for(waiters[name])
        waiters["a"].send_signal(signal.SIGCONT)
        wait_for(waiters["a"])
    assert order_of(tmp_path) == "bca"


def test_a_device_with_a_queue_is_not_taken_by_somebody_who_comes_later(tmp_path: Path) -> None:
    """Between two holders the lock is free for a moment, which only the first of the queue may use."""
    with another_run(tmp_path) as holder, queue_of(tmp_path, "a") as waiters:
        holder.stdin.close()  # type: ignore[union-attr]
        while not (tmp_path / "order").exists():
            with contextlib.suppress(DeviceBusy), lease(SERIAL, tmp_path, timeout_s=0):
                assert (tmp_path / "order").exists()
        wait_for(waiters["a"])


@pytest.mark.parametrize("content", ["", '{"pid":', '{"pid": "x"}'])
def test_a_damaged_ticket_of_a_dead_waiter_is_removed(tmp_path: Path, content: str) -> None:
    with another_run(tmp_path):
        ticket = tmp_path / f"{quote(SERIAL, safe='')}@{0:020d}-0.ticket"
        ticket.write_text(content)
    with lease(SERIAL, tmp_path, timeout_s=0):
        assert not ticket.exists()
