"""Holds the devices of a search, one or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.fleet.messages import Orders
from harness.fleet.worker_pool import WorkerPool
from harness.run.context import new_id
from harness.tune.devices import Devices, OneDevice
from harness.tune.several import SeveralDevices
from harness.tune.worker import work
from harness.workbench import make_ready, open_workbench

if TYPE_CHECKING:
    from harness.build.pool import Builder
    from harness.run.progress import Progress
    from harness.workbench import Request


@contextmanager
def open_devices(request: Request, names: Sequence[str], progress: Progress) -> Iterator[tuple[Builder, Devices]]:
    """Hold the devices of these names, with what builds for them. Raises what opening a device raises, UsageError."""
    if len(names) == 1:
        with open_workbench(request, names[0], progress) as bench:
            yield bench.builder, OneDevice(bench.run, progress.say)
        return
    progress.say(f"opening {', '.join(names)} (the first time, this compiles the runtimes that TVM's wheel lacks)")
    make_ready(request.paths, request.cache)
    orders = Orders(request.cache, new_id(), request.quirks.as_shipped)
    with request.builder(progress) as builder, WorkerPool(names, orders, work) as workers:
        yield builder, SeveralDevices(workers, names, progress.say)
