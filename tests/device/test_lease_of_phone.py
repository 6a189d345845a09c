"""Names, leases and interrupts, with the virtual phone as the registry starts it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest

from device_runner.device import Loadable
from device_runner.failures import DeviceBusy
from device_runner.registry import UnknownDevice, list_devices, open_device

pytestmark = [pytest.mark.rest, pytest.mark.device]

END_S = 60.0

RUN = """
    import signal, sys, threading
    from pathlib import Path
    import numpy as np
    from device_runner.device import Loadable
    from device_runner.interrupt import end_at
    from device_runner.registry import open_device

    def hear():
        number = int(sys.stdin.readline())
        signal.pthread_kill(threading.get_ident(), number)

    threading.Thread(target=hear, daemon=True).start()
    library, sha256, cache = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    with (
        end_at(signal.SIGINT, signal.SIGTERM),
        open_device("virtual", cache) as device,
        device.session({}, timeout_s=60) as session,
    ):
        program = session.load(Loadable(library, sha256, 1, "cpu"), timeout_s=60)
        print("running", flush=True)
        program.run([np.array([300_000_000, 0, 0], "int32")], timeout_s=300)
"""


@contextmanager
def another_run(loadable: Loadable, cache: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the virtual phone, in a call of five minutes.

    The signal whose number it reads goes to another thread.
    """
    arguments = [str(loadable.library), loadable.sha256, str(cache)]
    command = [sys.executable, "-c", textwrap.dedent(RUN), *arguments]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as run:
        assert run.stdout
        try:
            assert run.stdout.readline() == "running\n"
            yield run
        finally:
            run.kill()


def test_a_second_run_is_refused_by_name_and_the_list_says_busy(misbehaving: Loadable, cache: Path) -> None:
    told: list[str] = []
    with another_run(misbehaving, cache) as run:
        states = {entry.name: entry.state for entry in list_devices(cache)}
        with pytest.raises(DeviceBusy, match=f"process {run.pid} "):  # noqa: SIM117
            with open_device("virtual", cache, say=told.append, timeout_s=0.1):
                pytest.fail("two runs hold one phone")
    assert states["virtual"] == "busy"
    assert str(run.pid) in told[0]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_in_a_call_leaves_nothing(misbehaving: Loadable, cache: Path, sign: signal.Signals) -> None:
    leaves_nothing(misbehaving, cache, lambda run: run.send_signal(sign), {128 + sign, -sign})


def test_a_signal_that_interrupts_nothing_ends_a_run_in_a_call(misbehaving: Loadable, cache: Path) -> None:
    """As one that comes while TVM is on its way into `recv`; here another thread gets it."""

    def tell(run: subprocess.Popen[str]) -> None:
        time.sleep(1)  # until it waits in `recv`; a signal that comes before, Python's own handler sees
        assert run.stdin
        run.stdin.write(f"{signal.SIGTERM.value}\n")
        run.stdin.flush()

    leaves_nothing(misbehaving, cache, tell, {128 + signal.SIGTERM})


def leaves_nothing(
    misbehaving: Loadable, cache: Path, end: Callable[[subprocess.Popen[str]], None], codes: set[int]
) -> None:
    """End a run that is in a call."""
    with another_run(misbehaving, cache) as run:
        started = psutil.Process(run.pid).children(recursive=True)
        commands = " ".join(" ".join(process.cmdline()) for process in started)
        assert "relay_process" in commands
        assert "tvm_rpc" in commands
        end(run)
        assert run.wait(END_S) in codes
        _, alive = psutil.wait_procs(started, END_S)
    assert not alive
    with open_device("virtual", cache, timeout_s=0) as device:
        assert device.name == "virtual"


def test_a_wrong_name_is_met_with_the_nearest(cache: Path) -> None:
    with pytest.raises(UnknownDevice) as caught, open_device("virtul", cache):
        pytest.fail("a device of this name")
    assert caught.value.hint == "did you mean 'virtual'?"
