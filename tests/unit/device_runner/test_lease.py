from __future__ import annotations

import fcntl
import os
import struct
import threading
from pathlib import Path

import pytest

from device_runner.failures import DeviceBusy
from device_runner.lease import holder_of, lease, tell

SERIAL = "192.168.0.5:5555/a b"


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


def test_the_holder_tells_what_it_is_doing(tmp_path: Path) -> None:
    tell(SERIAL, tmp_path, "nobody", "holds it")
    assert holder_of(SERIAL, tmp_path) is None
    with lease(SERIAL, tmp_path, timeout_s=0):
        tell(SERIAL, tmp_path, "tiny-opencl-float32-untuned", "sampling")
        owner = holder_of(SERIAL, tmp_path)
    assert owner
    assert (owner.case, owner.step) == ("tiny-opencl-float32-untuned", "sampling")
    assert owner.step_since >= owner.since


def test_a_holder_is_seen_by_its_own_threads_and_asking_does_not_end_it(tmp_path: Path) -> None:
    """Locks of a process, unlike those of an open file, end when it closes any file that it has open on them."""
    with lease(SERIAL, tmp_path, timeout_s=0):
        for _ in range(3):
            assert holder_of(SERIAL, tmp_path)
        with pytest.raises(DeviceBusy), lease(SERIAL, tmp_path, timeout_s=0):
            pass
        assert holder_of(SERIAL, tmp_path)


def test_a_holder_is_seen_whose_lock_could_not_be_shown_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child of a holder that was killed has its lock until it runs another program: on a busy host, for seconds."""
    monkeypatch.setattr("device_runner.lease.SHOWN_WITHIN_S", 0.02)
    with lease(SERIAL, tmp_path, timeout_s=0):
        pass  # now there is a file to lock
    of_others = os.open(next(tmp_path.glob("*.lock")), os.O_RDWR)
    fcntl.fcntl(of_others, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    with lease(SERIAL, tmp_path, timeout_s=0):
        os.close(of_others)
        holder = holder_of(SERIAL, tmp_path)
    assert holder
    assert holder.pid == os.getpid()
