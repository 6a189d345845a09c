from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from device_runner.failures import DeviceBusy
from device_runner.lease import holder_of, lease, tell

SERIAL = "192.168.0.5:5555/a b"


@contextmanager
def another_run(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the device until its input closes."""
    script = """
        import sys
        from pathlib import Path
        from device_runner.lease import lease
        with lease(sys.argv[2], Path(sys.argv[1]), timeout_s=5):
            print("held", flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(folder), SERIAL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
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


def test_other_devices_are_free(tmp_path: Path) -> None:
    with lease(SERIAL, tmp_path, timeout_s=0), lease("other", tmp_path, timeout_s=0):
        assert holder_of("third", tmp_path) is None


def test_threads_of_one_run_exclude_each_other(tmp_path: Path) -> None:
    refused: list[str] = []

    def second() -> None:
        try:
            with lease(SERIAL, tmp_path, timeout_s=0.05):
                pass
        except DeviceBusy as busy:
            refused.append(busy.message)

    with lease(SERIAL, tmp_path, timeout_s=0):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert f"process {os.getpid()} " in refused[0]


def test_nothing_but_the_lock_stays_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), lease(SERIAL, tmp_path, timeout_s=0):
        raise KeyboardInterrupt
    assert [path.suffix for path in tmp_path.iterdir()] in ([".lock"], [])


def test_a_damaged_note_still_says_that_somebody_is_there(tmp_path: Path) -> None:
    with another_run(tmp_path):
        next(tmp_path.glob("*.json")).write_text('{"pid":')
        with pytest.raises(DeviceBusy, match="another run"), lease(SERIAL, tmp_path, timeout_s=0):
            pass


def test_the_holder_tells_what_it_is_doing(tmp_path: Path) -> None:
    tell(SERIAL, tmp_path, "nobody", "holds it")
    assert holder_of(SERIAL, tmp_path) is None
    with lease(SERIAL, tmp_path, timeout_s=0):
        tell(SERIAL, tmp_path, "tiny-opencl-float32-untuned", "sampling")
        owner = holder_of(SERIAL, tmp_path)
    assert owner
    assert (owner.case, owner.step) == ("tiny-opencl-float32-untuned", "sampling")
    assert owner.step_since >= owner.since


def test_asking_whether_a_device_is_free_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    with lease(SERIAL, tmp_path, timeout_s=0):
        pass
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            holder_of(SERIAL, tmp_path)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(200):
            with lease(SERIAL, tmp_path, timeout_s=0, waiting=pytest.fail):
                pass
    finally:
        stop.set()
        watcher.join()
