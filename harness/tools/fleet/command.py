"""`adreno-bench fleet`: offer this host's devices to others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from device_runner.adb_device import AdbDevice
from device_runner.failures import Failure
from device_runner.registry import open_device, tell
from device_runner.selection import ALL, select
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.cli.options import DeviceNames
from harness.judge.report.screen import Screen
from harness.tools.fleet.serve import Lender
from harness.tools.fleet.serve import serve as offer
from harness.tools.fleet.tracker import address_of, connected

LOOPBACK = "127.0.0.1"
AGAIN_S = 10.0
END_S = 30.0

fleet = typer.Typer(help="Offer the devices of this host to other hosts.", no_args_is_help=True)


@fleet.command()
def serve(
    tracker: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of a running TVM RPC tracker.")],
    device: DeviceNames = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address of this host for clients. Anyone who reaches it and the tracker gets a shell on the devices: "
            "use another address than the loopback only in a network that you trust.",
        ),
    ] = LOOPBACK,
) -> None:
    """Offer devices to other hosts until Ctrl-C. Default: all attached phones.

    `adreno-bench run --tracker` uses them. A run on this host must use the tracker, too.
    """
    if host in ("0.0.0.0", "::", ""):
        raise UsageError(
            f"--host {host!r} is no address that clients can connect to",
            hint="name an address of this host that they reach",
        )
    cache, lender = cache_root(), Lender(address_of(tracker), host, socket.gethostname())
    stop = threading.Event()
    with Screen() as screen:
        with connected(lender.tracker):
            screen.say(f"the tracker at {tracker} answers")
        names = select(device or [ALL], cache, screen.say)
        threads = [
            threading.Thread(target=_keep_serving, args=(name, cache, lender, screen.say, stop), name=f"serve {name}")
            for name in names
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            stop.set()
            for thread in threads:
                thread.join(END_S)


def _keep_serving(name: str, cache: Path, lender: Lender, say: Callable[[str], None], stop: threading.Event) -> None:
    """Hold a device and offer it; while it cannot be opened, try again."""
    while not stop.is_set():
        try:
            with open_device(name, cache, say=say, timeout_s=AGAIN_S) as device:
                if not isinstance(device, AdbDevice):
                    say(f"{name} cannot be offered: it is not reached through adb")
                    return
                offer(device, lender, lambda case, step: tell(name, cache, case, step), say, stop)
        except Failure as failure:
            say(f"{name} cannot be offered: {failure}")
            stop.wait(AGAIN_S)
