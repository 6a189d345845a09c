"""What a worker of Dask does with a job of another host: it builds it as one of its own, and shares the result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from device_runner.failures import Failure
from device_runner.runtimes import clml
from device_runner.store import Store, cache_root
from harness.build.artifact import Artifact
from harness.build.keys import toolchain
from harness.build.pool import Builder
from harness.build.shared_store import SharedStore
from harness.cases.plan import Job
from harness.cases.suite import Limits

RECEIVED = "received"
"""Folder of the cache with files of other hosts."""


def make(order: dict[str, Any]) -> dict[str, Any]:
    """Do a job in a process of its own, under its limits, and return in plain data how it went."""
    from distributed import get_worker

    worker = get_worker()
    os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)  # Dask sets it for arrays; a compiler allocates more slowly with it
    said: list[str] = []
    answer = {"worker": str(worker.name), "address": worker.address, "said": said, "failure": None}
    if why := _other_tools(order["toolchain"], toolchain(order["payload"].get("request", {}).get("host_triple"))):
        return {**answer, "refused": why}
    try:
        return {**answer, "store": _build(order, SharedStore(order["store"], said.append))}
    except Failure as failure:
        told = {name: getattr(failure, name) for name in ("outcome", "message", "hint", "evidence")}
        return {**answer, "failure": {**told, "kind": type(failure).__name__}}


def _other_tools(wanted: dict[str, str], found: dict[str, str]) -> str:
    """Return what this host has in another version than the host that asks; empty if all is the same."""
    differing = [name for name in wanted if wanted[name] != found[name]]
    return ", ".join(f"it has {name} {found[name] or 'missing'}, not {wanted[name]}" for name in differing)


def _build(order: dict[str, Any], shared: SharedStore) -> str:
    """Build, and return the kind of store that has the entry now. Raises the failure that it came to."""
    cache = cache_root()
    payload = _receive(order["payload"], Store(cache, RECEIVED), shared)
    if payload.get("request", {}).get("path") == "clml" and clml.needed():
        clml.library(cache)
    job, limits = Job(order["kind"], order["key"], order["title"], payload), Limits(**order["limits"])
    with Builder(cache, limits, processes=1, shared=shared) as builder:
        made = builder.build([job])[job.key]
    if isinstance(made, Failure):
        raise made
    folder = made.loadable.library.parent if isinstance(made, Artifact) else made.folder
    if made.reused:  # of this host's cache: the store may have lost it
        shared.publish(folder.parent.name, job.key, folder)
    return folder.parent.name


def _receive(payload: dict[str, Any], store: Store, shared: SharedStore) -> dict[str, Any]:
    """Return the payload with files of this host in place of hashes. Raises RigFailure."""

    def received(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if set(value) != {"sha256", "suffix"}:
            return {name: received(inner) for name, inner in value.items()}
        name = f"file{value['suffix']}"
        made = store.obtain(value["sha256"], lambda scratch: shared.receive(value["sha256"], scratch / name), 600.0)
        return str(Path(made) / name)

    return {name: received(value) for name, value in payload.items()}
