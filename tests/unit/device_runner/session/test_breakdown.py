"""A broken connection is traced to its owner: the process, the device, or what leads to it."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from device_runner.device import ShellResult
from device_runner.failures import DeviceCrash, DeviceLost, Failure, Hang, LinkFailure, RigFailure
from device_runner.rpc_server.server import Server
from device_runner.session import rpc_session as session
from device_runner.session.relay import Relay
from device_runner.session.rpc_session import RpcSession

BOOT = "1a2b"
RPC_MAGIC = 0xFF271
"""TVM: kRPCMagic of src/runtime/rpc/rpc_endpoint.h."""


@dataclass
class Signs:
    """What can be seen after a call broke; the defaults are a worker that closed its connection and nothing else."""

    boot: str = BOOT
    answers: bool = True
    unanswered: int = 0
    """How many commands it leaves without an answer before it answers."""
    expired: bool = False
    relay_died: bool = False
    nonsense: str = ""
    ended: bool = False
    code: int | None = None
    log: str = ""

    def shell(self, command: list[str], *, timeout_s: float) -> ShellResult:
        self.unanswered -= 1
        if not self.answers or self.unanswered >= 0:
            raise DeviceLost("it does not answer")
        return ShellResult(0, f"{self.boot}\n", "")


def verdict(signs: Signs) -> Failure:
    opened = RpcSession.__new__(RpcSession)
    process = SimpleNamespace(ended=signs.ended, code=signs.code, output=lambda: signs.log)
    vars(opened).update(
        transport=SimpleNamespace(shell=signs.shell, name="phone"),
        _relay=SimpleNamespace(open=False, expired=signs.expired, died=signs.relay_died, nonsense=signs.nonsense),
        _server=SimpleNamespace(process=process, boot=BOOT),
        _failure=None,
    )
    return opened._diagnosis(OSError("closed"), "running lib.so", 5.0)


@pytest.mark.parametrize(
    ("signs", "owner", "message"),
    [
        (Signs(ended=True, code=139), DeviceCrash, "died of SIGSEGV while running lib.so"),
        (Signs(log="Child pid=7 finished, status = 9"), DeviceCrash, "died of SIGKILL"),
        (Signs(log="Child pid=7 exited, status =139"), DeviceCrash, "died of SIGSEGV"),
        (Signs(log="Child pid=7 finished, status = 256"), DeviceCrash, "ended with code 1"),
        (Signs(), DeviceCrash, "closed the connection"),
        (Signs(expired=True), Hang, "did not end within 5 s"),
        (Signs(answers=False), DeviceLost, "does not answer"),
        (Signs(unanswered=1, log="Child pid=7 finished, status = 11"), DeviceCrash, "died of SIGSEGV"),
        (Signs(unanswered=2, log="Child pid=7 finished, status = 11"), DeviceLost, "does not answer"),
        (Signs(unanswered=1, expired=True), DeviceLost, "does not answer"),
        (Signs(answers=False, expired=True), DeviceLost, "does not answer"),
        (Signs(boot="3c4d"), DeviceLost, "rebooted while running lib.so"),
        (Signs(boot="3c4d", ended=True), DeviceLost, "rebooted"),
        (Signs(ended=True), DeviceLost, "went away and came back"),
        (Signs(ended=True, expired=True), DeviceLost, "went away and came back"),
        (Signs(relay_died=True), LinkFailure, "the relay to phone was killed"),
        (Signs(answers=False, nonsense="a key of -1 bytes"), RigFailure, "it sent a key of -1 bytes while running"),
    ],
)
def test_the_owner_of_a_broken_connection(
    signs: Signs, owner: type[Failure], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SLOW_PROBE_TIMEOUT_S", 0.05)
    failure: Any = verdict(signs)
    assert type(failure) is owner
    assert message in failure.message


@pytest.mark.parametrize(
    ("log", "answers", "owner"),
    [
        ("", True, RigFailure),
        ("", False, DeviceLost),
        ("Warning: Bind failed to 127.0.0.1:21794\nBind to 127.0.0.1:-1\n", True, LinkFailure),
    ],
    ids=["another release", "unplugged", "another server on its port"],
)
@pytest.mark.parametrize("answered_bytes", [0, 2, 4, 6])
def test_a_server_that_hangs_up_in_the_handshake_costs_no_socket(
    answered_bytes: int, log: str, answers: bool, owner: type[Failure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SLOW_PROBE_TIMEOUT_S", 0.05)
    signs = Signs(answers=answers)
    process: Any = SimpleNamespace(ended=False, code=None, output=lambda: log)
    ours, theirs = socket.socketpair()

    def hang_up() -> None:
        with theirs:
            theirs.recv(4)
            theirs.sendall(RPC_MAGIC.to_bytes(4, "little")[:answered_bytes] + bytes(max(0, answered_bytes - 4)))

    with Relay(ours) as relay:
        threading.Thread(target=hang_up).start()
        transport: Any = SimpleNamespace(shell=signs.shell, name="phone")
        with pytest.raises(Failure) as caught:
            RpcSession(transport, Server("phone", process, 21794, "key"), relay, {}, timeout_s=5)
        assert type(caught.value) is owner
        peers = [connection.raddr for connection in psutil.Process().net_connections("tcp4") if connection.raddr]
        assert relay.port not in [peer.port for peer in peers]


class Remote:
    """An object on the device, in a cycle as `VirtualMachine.get_outputs` makes it, which the device is to free."""

    freed = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Remote.freed += 1


@pytest.mark.parametrize("breaks", [False, True])
def test_no_thread_frees_a_remote_object_in_a_cycle_during_a_call(breaks: bool) -> None:
    """It waited for the connection with Python's lock, and the call for the lock: `ops` hung, deaf to every signal."""
    opened = RpcSession.__new__(RpcSession)
    deadline = SimpleNamespace(deadline=lambda _: contextlib.nullcontext(), open=True, cut=lambda: None)
    vars(opened).update(_failure=None, _relay=deadline)
    gc.collect()
    before, things = Remote.freed, list[list[int]]()
    Remote()

    def make_objects() -> None:
        things.extend([n] for n in range(50_000))

    with contextlib.suppress(Failure), opened.calling("running lib.so", 5.0):
        worker = threading.Thread(target=make_objects)
        worker.start()
        worker.join()
        during = Remote.freed - before
        if breaks:
            raise ValueError("TVM says something")
    assert during == 0
    assert gc.isenabled()
    make_objects()
    assert Remote.freed - before == 1
