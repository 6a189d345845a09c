"""What befalls the phone in the middle of a session: it is unplugged, freezes, reboots, gets hot, or chance strikes.

What a mishap changes under `/sys` is told to the host, because the phone cannot write there (`events`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from device_runner.stand_ins.virtual import processes
from device_runner.stand_ins.virtual.fault_file import POLL_S
from device_runner.stand_ins.virtual.faults import Mishap
from device_runner.stand_ins.virtual.phone import BOOT_COMPLETED
from device_runner.stand_ins.virtual.transport import HostConnection, Phone, Stream, StreamRefused

TVM_RPC = (b"tvm_rpc.server", b"/tvm_rpc\0server")
"""Word in the command line of the server and its workers, ours and TVM's, and of no other process."""

_FORGOTTEN = ("debug.*", "virtual.power.fixed_performance", "virtual.power.wakefulness")
"""Properties that do not outlive a boot. Settings do."""


async def during(transport: HostConnection) -> None:
    """Let happen what the faults have in store for a session that begins now, until cancelled or done."""
    phone = transport.phone
    await asyncio.gather(*(_later(transport, mishap) for mishap in phone.faults.now.mishaps))


async def _later(transport: HostConnection, mishap: Mishap) -> None:
    await asyncio.sleep(mishap.after_s)
    if transport.phone.faults.strikes(mishap):
        transport.background(befall(transport.phone, mishap.what, mishap.for_s))


async def befall(phone: Phone, what: str, for_s: float) -> None:
    """Let one mishap happen, and end, now."""
    phone.tell(event="injected", what=what, for_s=for_s)
    await _MISHAPS[what](phone, for_s)


async def _unplug(phone: Phone, for_s: float) -> None:
    phone.faults.for_a_while(for_s, offline=True)


async def _freeze(phone: Phone, for_s: float) -> None:
    phone.faults.for_a_while(for_s, frozen=True)


async def _kill_server(phone: Phone, _: float) -> None:
    kill_server(phone)


def kill_server(phone: Phone) -> None:
    """Kill every `tvm_rpc` and its workers."""
    processes.end_all_of(phone.environment[processes.PHONE_ID], running=TVM_RPC)


async def _reset_gpu(phone: Phone, _: float) -> None:
    phone.tell(event="reset_gpu")


async def _overheat(phone: Phone, for_s: float) -> None:
    phone.tell(event="overheat")
    await asyncio.sleep(for_s)
    phone.tell(event="cool")


async def _reboot(phone: Phone, for_s: float) -> None:
    """Away for `for_s`, then reachable and booting for as long again."""
    root, this = Path(phone.root), object()
    phone.boots.append(this)
    with phone.faults.during(offline=True):
        await asyncio.sleep(2 * POLL_S)  # the host loses the connection before it could hear of killed commands
        processes.end_all_of(phone.environment[processes.PHONE_ID])
        for pattern in _FORGOTTEN:
            for path in (root / "data/property").glob(pattern):
                path.unlink(missing_ok=True)
        (root / BOOT_COMPLETED).write_text("0\n")
        phone.tell(event="reboot")
        await asyncio.sleep(for_s)
    await asyncio.sleep(for_s)
    phone.boots.remove(this)
    if not phone.boots:
        (root / BOOT_COMPLETED).unlink(missing_ok=True)


_MISHAPS: dict[str, Callable[[Phone, float], Awaitable[None]]] = {
    "unplug": _unplug,
    "freeze": _freeze,
    "kill_server": _kill_server,
    "reset_gpu": _reset_gpu,
    "overheat": _overheat,
    "reboot": _reboot,
}


TITLE_LIMIT = 200


@contextmanager
def strike(stream: Stream, operation: str, title: str) -> Iterator[None]:
    """Wrap the work of one operation, and let it fail if chance says so. Raises StreamRefused if it may not begin."""
    phone = stream.transport.phone
    chance = phone.faults.now.chance
    stroke = phone.dice.draw(operation, chance) if chance else None
    if not chance or not stroke:
        yield
        return

    def strike_now() -> None:
        phone.tell(event="injected", what=stroke.what, into=operation, title=title[:TITLE_LIMIT])
        if stroke.what == "refuse":
            raise StreamRefused("by chance")
        if stroke.what == "freeze":
            phone.faults.for_a_while(chance.for_s, frozen=True)
        elif stroke.what == "drop":
            stream.transport.drop()
        elif stroke.what == "crash":
            kill_server(phone)

    with ExitStack() as until_it_ends:
        if stroke.what in ("drop", "crash"):  # in the middle of the work, unless it has ended by then
            loop = asyncio.get_running_loop()
            until_it_ends.callback(loop.call_later(stroke.when * chance.for_s, strike_now).cancel)
        else:
            strike_now()
        if failing := _FAILING.get(stroke.what):
            until_it_ends.enter_context(phone.faults.during(**failing))
        yield


_FAILING: dict[str, dict[str, Any]] = {"error": {"send_error": "by chance"}, "full": {"full_after_bytes": 0}}
