"""The process that works on one device of a fleet: it holds the device, takes cases and returns records.

A process for each device, because TVM holds Python's interpreter lock in its calls, and because whatever takes such a
process down is then the loss of one device and no more.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

from device_runner.device import Device
from device_runner.failures import Failure
from device_runner.interrupt import end_at
from device_runner.lifetime import die_with_parent
from harness.fleet.messages import Away, Back, CaseDone, Gone, Message, Opened, Orders, RunCase, Said, Stepped
from harness.run.context import Run
from harness.run.progress import Silent
from harness.run.runner import run_with_recovery
from harness.run.tuning import TuningStore

LOOK_EVERY_S = 2.0
LOOK_TIMEOUT_S = 2.0
"""A device that dies while it has nothing to do is noticed within both."""

AWAY = "does not answer"

Tell = Callable[[str, str], None]
"""Lets whoever watches the device see a case and its step."""

Opener = Callable[[str, Orders, Callable[[str], None]], contextlib.AbstractContextManager[tuple[Device, Tell]]]

Obey = Callable[[Connection, Device, Orders, Tell], None]
"""What a worker does with its device: takes orders until the pipe ends, which it hears as an error of the pipe."""


def work(pipe: Connection, name: str, orders: Orders) -> None:
    """The whole life of a worker that takes cases."""
    live(pipe, name, orders, _run_all)


def live(pipe: Connection, name: str, orders: Orders, obey: Obey) -> None:
    """The whole life of a worker. Ends when the other end of the pipe is closed or its process dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to us all; whoever started us ends us
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with end_at(signal.SIGTERM):  # the device's server is ended, its settings are put back, its lease is free
        die_with_parent(signal.SIGTERM)
        serve(pipe, name, orders, _opened, obey)


def serve(pipe: Connection, name: str, orders: Orders, opened: Opener, obey: Obey) -> None:
    """Hold a device and obey on it until the pipe ends."""
    send: Callable[[Message], None] = pipe.send
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody is there to work for
        try:
            with opened(name, orders, lambda text: send(Said(text))) as (device, tell):
                send(Opened(device.identity, device.name))
                obey(pipe, device, orders, tell)
        except Failure as failure:
            send(Gone(failure))


def _run_all(pipe: Connection, device: Device, orders: Orders, tell: Tell) -> None:
    run = run_on(device, orders)
    while True:
        order = _next(pipe, run, tell)
        record = run_with_recovery(order.plan, order.built, run, _Told(pipe, tell))
        quarantine = run.recovery.quarantine
        tell("", AWAY if quarantine else "")
        pipe.send(CaseDone(record, quarantine.why if quarantine else ""))


def run_on(device: Device, orders: Orders) -> Run:
    """The run, as it is on one of its devices."""
    return Run(device, TuningStore(orders.cache), orders.as_shipped, allowed=orders.allowed, id=orders.run)


def _next(pipe: Connection, run: Run, tell: Tell) -> RunCase:
    """The next order. As long as there is none it looks after the device, and says when it goes and comes."""
    away = run.recovery.quarantine is not None
    while not pipe.poll(LOOK_EVERY_S):
        why = _missed(run)
        if bool(why) is not away:
            away = not away
            tell("", AWAY if away else "")
            pipe.send(Away(why) if away else Back())
    order = pipe.recv()
    if not isinstance(order, RunCase):
        raise TypeError(f"expected an order, found {type(order).__name__}")
    return order


def _missed(run: Run) -> str:
    """Why the device does not answer; empty if it does. It is only looked at: bringing it back is for the next case."""
    try:
        if run.recovery.quarantine:
            run.recovery.admit(run.rungs)
        elif run.rungs:
            run.rungs[0].act(LOOK_TIMEOUT_S)
    except Failure as failure:
        return failure.message
    return ""


class _Told(Silent):
    """Tells the run, and whoever watches the device, what becomes of a case."""

    def __init__(self, pipe: Connection, tell: Tell) -> None:
        self._pipe = pipe
        self._tell = tell

    def step(self, case_id: str, step: str) -> None:
        """Pass it on."""
        self._pipe.send(Stepped(step))
        self._tell(case_id, step)


@contextlib.contextmanager
def _opened(name: str, orders: Orders, say: Callable[[str], None]) -> Iterator[tuple[Device, Tell]]:
    from device_runner.fleet.known import remember
    from device_runner.fleet.remote import open_remote
    from device_runner.registry import WAIT_FOR_DEVICE_S, open_device, tell

    if orders.tracker:
        key = key_of(name)
        with open_remote(key, orders.tracker, orders.cache, timeout_s=WAIT_FOR_DEVICE_S, say=say) as (device, told):
            yield device, told
        return
    with open_device(name, orders.cache, say=say) as opened:
        remember(name, opened.identity, orders.cache)
        yield opened, lambda case, step: tell(name, orders.cache, case, step)


def member_name(key: str, number: int) -> str:
    """What a worker is called that asks the tracker for a device of this key; which one it gets is not known before."""
    return f"{key} #{number}"


def key_of(name: str) -> str:
    """Inverse of `member_name`."""
    return name.rpartition(" #")[0]
