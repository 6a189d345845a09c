"""A device that means harm: its RPC server and its shell do what no honest ones do, in each step of a session."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hostile_rpc
import numpy as np
import pytest
import suites
from waiting import FENCE_S, eventually

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.failures import DeviceLost, Failure
from device_runner.rpc_device import RpcDevice
from device_runner.stand_ins.local import RPC_SERVER, LocalDevice, LocalTransport
from device_runner.stand_ins.virtual import VirtualPhone
from device_runner.transport.adb import RESTART
from device_runner.transport.base import OUTPUT_LIMIT_BYTES
from harness.base.outcome import Outcome
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.tuning import TuningStore

pytestmark = [pytest.mark.rest, pytest.mark.device]

DEADLINE_S = 1.5
"""Deadline of each call of a session with a server that goes silent."""
MEMORY_BYTES = 300 << 20
"""How much memory this process may gain. What is promised is 1 GB for the whole of it."""
FIRST_CALL = 3
"""The step in which the program is loaded, the first call of a function."""
EVERY = 4
"""Of so many steps of a session, one is tried."""
TURNS = ["silence", "drip"]
"""Manners that only a deadline ends."""
SLOW = [*TURNS, "close"]
"""Manners that take seconds each time, tried a third as often."""


def converse(device: RpcDevice, program: Loadable, timeout_s: float) -> None:
    """A short session."""
    with device.session({}, timeout_s=FENCE_S if timeout_s > DEADLINE_S else timeout_s) as session:
        loaded = session.load(program, timeout_s=timeout_s)
        loaded.run([np.zeros((4, 8), "float32")], timeout_s=timeout_s)
        loaded.wall_ms(2, timeout_s=timeout_s)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cpu_program: Loadable) -> Path:
    """A folder with the answers of an honest server."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "honest").write_text(json.dumps(RPC_SERVER))
    converse(server_in(folder), cpu_program, FENCE_S)
    return folder


def server_in(folder: Path) -> LocalDevice:
    """The device whose server works in this folder."""
    script = [sys.executable, "-I", "-S", hostile_rpc.__file__, str(folder)]
    return LocalDevice("local", LocalTransport(str(folder)), script)


def failure_of(folder: Path, program: Loadable, step: int, manner: str) -> str:
    """The failure in which a session ends with a server that turns at a step; the session's time and memory hold."""
    (folder / "manner").write_text(f"{step} {manner}")
    before, began_s = peak_bytes(fresh=True), time.monotonic()
    deadline_s = DEADLINE_S if manner in TURNS else FENCE_S
    with pytest.raises(Failure) as caught:
        converse(server_in(folder), program, deadline_s)
    assert time.monotonic() - began_s < FENCE_S
    assert peak_bytes() - before < MEMORY_BYTES
    assert not (folder / "served").exists(), "the host served its device"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def peak_bytes(*, fresh: bool = False) -> int:
    """The most memory this process has had, since it was asked to forget what it had had (proc(5), clear_refs)."""
    if fresh:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("manner", hostile_rpc.MANNERS)
def test_a_server_that_turns_hostile_ends_in_one_line(folder: Path, cpu_program: Loadable, manner: str) -> None:
    assert failure_of(folder, cpu_program, FIRST_CALL, manner)


@pytest.mark.parametrize("manner", ["exit", "silence", "other protocol"])
def test_a_server_that_is_hostile_from_the_beginning_is_named(folder: Path, cpu_program: Loadable, manner: str) -> None:
    line = failure_of(folder, cpu_program, 0, manner)
    assert line.startswith("the RPC server on local ")
    assert "`adreno-bench doctor --device NAME` shows that" in line


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("manner", hostile_rpc.MANNERS)
def test_a_server_that_turns_hostile_later_ends_in_one_line(folder: Path, cpu_program: Loadable, manner: str) -> None:
    steps = len(list(hostile_rpc.packets((folder / "answers").read_bytes())))
    every = 3 * EVERY if manner in SLOW else EVERY
    for step in range(1, steps - 3, every):  # the last answers free what the session had, and nobody waits for them
        assert failure_of(folder, cpu_program, step, manner)


@pytest.fixture
def chatty(phone: VirtualPhone, device: AdbDevice) -> AdbDevice:
    """A phone that was honest when it was identified, and whose shell then prints without end."""
    assert device.identity.serial
    phone.fault(shell_answers="endless")
    return device


@pytest.mark.parametrize("doing", ["shell", "push"])
def test_a_shell_that_prints_for_ever_is_cut(chatty: AdbDevice, cpu_program: Loadable, doing: str) -> None:
    transport, before = chatty.transport, peak_bytes(fresh=True)
    act: dict[str, Callable[[], object]] = {
        "shell": lambda: transport.shell(["true"], timeout_s=FENCE_S),
        "push": lambda: transport.push(cpu_program.library, cpu_program.sha256, timeout_s=FENCE_S),
    }
    with pytest.raises(DeviceLost, match="prints more than 16 MiB") as caught:
        act[doing]()
    assert transport.name in caught.value.message
    assert caught.value.hint == RESTART
    assert peak_bytes() - before < MEMORY_BYTES


def test_a_log_without_end_is_kept_to_its_newest_part(chatty: AdbDevice) -> None:
    before = peak_bytes(fresh=True)
    process = chatty.transport.spawn(["true"], environment={}, timeout_s=FENCE_S)
    assert eventually(lambda: len(process.output()) > OUTPUT_LIMIT_BYTES // 2)
    time.sleep(0.5)
    assert len(process.output()) < 2 * OUTPUT_LIMIT_BYTES
    process.end(0)
    assert peak_bytes() - before < MEMORY_BYTES


def test_a_run_on_a_phone_that_prints_for_ever_ends_in_a_record(
    chatty: AdbDevice, misbehaving: Loadable, tmp_path: Path
) -> None:
    built, plan = suites.built("case", misbehaving, [5_000, 0, 0], tmp_path), suites.plan("case")
    before = peak_bytes(fresh=True)
    record = run_with_recovery(plan, built, Run(chatty, TuningStore(tmp_path)), SilentProgress())
    assert record.outcome in (Outcome.DEVICE_LOST, Outcome.INFRA_ERROR)
    assert "RPC server on " in record.message
    assert peak_bytes() - before < MEMORY_BYTES
