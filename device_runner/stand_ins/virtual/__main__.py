"""The daemon's process. Prints `{"port": N}` when it can be reached, then serves until its parent ends it or dies."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import sys
from pathlib import Path

from device_runner.lifetime import die_with_parent
from device_runner.stand_ins.virtual import daemon, processes
from device_runner.stand_ins.virtual.fault_file import FaultFile
from device_runner.stand_ins.virtual.phone import FAULTS_JSON, read_properties
from device_runner.stand_ins.virtual.transport import Phone

BANNER_KEYS = ("ro.product.name", "ro.product.model", "ro.product.device")
_BANNER_UNFIT = re.compile(r"[;=:]")
_IGNORED_IN_THE_BACKGROUND = (signal.SIGHUP, signal.SIGQUIT)
"""What `nohup` and a shell's `&` have their commands ignore, and all that these start; what a phone starts does not."""


def main() -> None:
    """Run the daemon."""
    parser = argparse.ArgumentParser(
        prog="device_runner.stand_ins.virtual", description="device side of adb, on 127.0.0.1 only"
    )
    parser.add_argument("--root", type=Path, required=True, help="folder that stands for / of the phone")
    root = parser.parse_args().root
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    die_with_parent(signal.SIGTERM)
    for signum in _IGNORED_IN_THE_BACKGROUND:
        signal.signal(signum, signal.SIG_DFL)
    properties = read_properties(root)
    phone = Phone(
        root=str(root),
        environment=dict(os.environ),
        faults=FaultFile(root / FAULTS_JSON),
        tell=tell,
        product={key: _BANNER_UNFIT.sub("_", properties[key]) for key in BANNER_KEYS if key in properties},
    )
    try:
        asyncio.run(_serve(phone))
    finally:
        processes.end_all_of(os.environ[processes.PHONE_ID])


def tell(**facts: object) -> None:
    """Say something to the host that has the phone."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def _serve(phone: Phone) -> None:
    listener = daemon.listening_socket()
    serving = asyncio.ensure_future(daemon.serve(listener, phone))
    loop = asyncio.get_running_loop()

    def stop(*_: object) -> None:
        if not serving.done():
            loop.call_soon_threadsafe(serving.cancel)

    # Not the loop's own handlers: these must still stand when the loop is gone and the rest is being ended, because
    # the kernel tells of a dying parent once for each of its threads.
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, stop)
    tell(port=listener.getsockname()[1])
    with contextlib.suppress(asyncio.CancelledError):
        await serving


if __name__ == "__main__":
    main()
