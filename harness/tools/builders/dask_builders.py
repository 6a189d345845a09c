"""Builds on other hosts: jobs go to the workers of a Dask scheduler, files and results through the shared store.

Dask's `ClientExecutor` carries a job there as plain data, and repeats it if its worker is lost. Here is what Dask does
not know: which files a job needs, which workers have another compiler, and when to ask again because the scheduler
itself was lost. On a worker `make_on_worker` builds a job as one of its own, and shares the result.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

from device_runner.failures import Failure, RigFailure, SetupMissing
from device_runner.runtimes import clml
from device_runner.store import Store, cache_root, sha256_of
from harness.base.failures import described, revived
from harness.base.plan import Job
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Artifact
from harness.compile.artifacts.keys import toolchain
from harness.compile.artifacts.pool import Builder
from harness.tools.builders.shared_store import ObjectStore

CONNECT_S = 10.0
ABSENCE_S = 120.0
"""How long a scheduler, or the last of its workers, may be away."""
LOOK_EVERY_S = 2.0
FILES = ("model_file", "schedules", "onnx", "program", "labelled", "inputs")
"""Fields of a payload that name a file of this host."""
_EXTERNAL = b"\x08location"
"""In an ONNX file whose weights are in other files: a key of `TensorProto.external_data`."""


class DaskBuilders:
    """The workers of one scheduler. Any thread may use it."""

    jobs = 64
    """Jobs that a host hands out at once; the scheduler queues them."""

    def __init__(self, address: str, store: ObjectStore, say: Callable[[str], object]) -> None:
        """Connect. `say` is told which workers are refused. Raises RigFailure, SetupMissing."""
        self._address, self._store, self._say = address, store, say
        self._refused: dict[str, str] = {}
        """By address of a worker, why."""
        self._sent: dict[Path, str] = {}
        self._waiting: set[futures.Future[Any]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._client = self._connect()

    def close(self) -> None:
        """Stop waiting. What workers are at, they end."""
        self._closed = True
        for future in list(self._waiting):
            future.cancel()
        self._client.close(CONNECT_S)

    def takes(self, job: Job) -> bool:
        """Return whether a job can be done elsewhere: all but a model whose weights are in other files."""
        original = job.payload.get("original")
        return not original or _EXTERNAL not in Path(original["onnx"]).read_bytes()

    def make(self, job: Job, limits: Limits, folder: Path, place: int) -> None:
        """Have a job done, and fill an empty folder with its entry. Raises its failure.

        `place` is the job's among those that were asked for: Dask itself takes those of one moment in any order.
        """
        order = {
            "kind": job.kind,
            "key": job.key,
            "title": job.title,
            "payload": self._send_files(job.payload),
            "limits": limits.model_dump(),
            "store": self._store.url,
            "toolchain": toolchain(job.payload.get("request", {}).get("host_triple")),
        }
        while (answer := self._ask(order, -place)) is None:
            pass
        worker = answer["worker"]
        for line in answer["said"]:
            self._say(f"{worker}: {line}")
        if failure := answer["failure"]:
            raise revived(failure)
        if not self._store.fetch(answer["store"], job.key, folder):
            raise RigFailure(
                f"{worker} built {job.title}, and the store {self._store.url} does not have it",
                hint="builders must be able to write to it",
            )

    def _ask(self, order: dict[str, Any], priority: int) -> dict[str, Any] | None:
        """Return what a worker says; None if another has to be asked. Raises RigFailure."""
        client, chosen = self._client, self._usable()
        try:
            executor = client.get_executor(pure=False, workers=chosen)
            answer = self._wait(executor.submit(make_on_worker, order, priority=priority), chosen)
        except futures.CancelledError:
            self._reconnect(client)
            return None
        except Failure:
            raise
        except Exception as error:  # Dask's own, or one of a worker that lacks this program
            lines = str(error).splitlines() or [type(error).__name__]
            raise RigFailure(f"the builders at {self._address} failed at {order['title']}: {lines[0]}") from error
        if answer and (why := answer.get("refused")):
            self._refuse(answer["address"], f"the builder {answer['worker']} is refused: {why}")
            return None
        return answer

    def _wait(self, future: futures.Future[dict[str, Any]], chosen: list[str] | None) -> dict[str, Any] | None:
        """Return the result; None if each worker that may do it is gone, and others may. Raises RigFailure."""
        self._waiting.add(future)
        try:
            while True:
                with contextlib.suppress(futures.TimeoutError):
                    return future.result(LOOK_EVERY_S)
                self._usable()
                if chosen and not set(chosen) & set(self._workers()):
                    future.cancel()
                    return None
        finally:
            self._waiting.discard(future)

    def _usable(self) -> list[str] | None:
        """Return the workers that are not refused, None if none is. Raises RigFailure if there is none for long."""
        end = time.monotonic() + ABSENCE_S
        while True:
            self._require_open()
            workers = self._workers()
            usable = [worker for worker in workers if worker not in self._refused]
            if usable:
                return usable if len(usable) < len(workers) else None
            if workers:
                raise RigFailure(self._refused[workers[0]], hint="install what this host has, or leave --builders out")
            if time.monotonic() > end:
                message = f"no builder has connected to {self._address} for {ABSENCE_S:.0f} s"
                raise RigFailure(message, hint=f"`dask worker {self._address}` on a host with adreno-bench")
            time.sleep(LOOK_EVERY_S / 4)

    def _workers(self) -> list[str]:
        return list(self._client.scheduler_info()["workers"])

    def _refuse(self, address: str, why: str) -> None:
        with self._lock:
            if address not in self._refused:
                self._refused[address] = why
                self._say(why)

    def _send_files(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload with the hash and the ending of each file, which the store has then."""
        return {
            name: self._send_files(value)
            if name in ("original", "request")
            else self._send(Path(value))
            if name in FILES and value and isinstance(value, str)
            else value
            for name, value in payload.items()
        }

    def _send(self, file: Path) -> dict[str, str]:
        with self._lock:  # several jobs begin with the same model
            if file not in self._sent:
                sha256 = sha256_of(file)
                if not self._store.send(file, sha256):
                    raise RigFailure(f"the store {self._store.url} did not take {file.name}, which builders need")
                self._sent[file] = sha256
        return {"sha256": self._sent[file], "suffix": file.suffix}

    def _require_open(self) -> None:
        if self._closed:
            raise RigFailure("the build was stopped")

    def _reconnect(self, lost: Any) -> None:
        """Find the scheduler again, which was lost with all that it knew. Raises RigFailure."""
        with self._lock:
            if self._client is not lost:
                return
            lost.close(CONNECT_S)
            end = time.monotonic() + ABSENCE_S
            while self._client is lost:
                self._require_open()
                try:
                    self._client = self._connect()
                except RigFailure:
                    if time.monotonic() > end:
                        raise
                    time.sleep(LOOK_EVERY_S / 4)

    def _connect(self) -> Any:
        try:
            from distributed import Client
        except ImportError:
            hint = "`pip install 'adreno-bench[dask]'`"
            raise SetupMissing("--builders needs the package distributed", hint=hint) from None
        for name in ("distributed", "distributed.client"):  # what it says of a lost scheduler, we say
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            return Client(self._address, timeout=CONNECT_S, set_as_default=False, name="adreno-bench")
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            hint = "`dask scheduler` starts one; its address is such as tcp://HOST:8786"
            raise RigFailure(f"no Dask scheduler answers at {self._address}: {reason}", hint=hint) from None


RECEIVED = "received"
"""Folder of the cache with files of other hosts."""


def make_on_worker(order: dict[str, Any]) -> dict[str, Any]:
    """Do a job in a process of its own, under its limits, and return in plain data how it went."""
    from distributed import get_worker

    worker = get_worker()
    os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)  # Dask sets it for arrays; a compiler allocates more slowly with it
    messages: list[str] = []
    answer = {"worker": str(worker.name), "address": worker.address, "said": messages, "failure": None}
    if why := _other_tools(order["toolchain"], toolchain(order["payload"].get("request", {}).get("host_triple"))):
        return {**answer, "refused": why}
    try:
        return {**answer, "store": _build(order, ObjectStore(order["store"], messages.append))}
    except Failure as failure:
        return {**answer, "failure": described(failure)}


def _other_tools(here: dict[str, str], there: dict[str, str]) -> str:
    """Return what this host has in another version than the host that asks; empty if all is the same."""
    differing = [name for name in here if here[name] != there[name]]
    return ", ".join(f"it has {name} {there[name] or 'missing'}, not {here[name]}" for name in differing)


def _build(order: dict[str, Any], shared: ObjectStore) -> str:
    """Build, and return the kind of store that has the entry now. Raises its failure."""
    cache = cache_root()
    payload = _receive(order["payload"], Store(cache, RECEIVED), shared)
    if payload.get("request", {}).get("path") == "clml" and clml.needed():
        clml.library(cache)
    job, limits = Job(order["kind"], order["key"], order["title"], payload), Limits(**order["limits"])
    with Builder(cache, limits, processes=1, shared=shared) as builder:
        result = builder.build([job])[job.key]
    if isinstance(result, Failure):
        raise result
    folder = result.loadable.library.parent if isinstance(result, Artifact) else result.folder
    if result.reused:  # of this host's cache: the store may have lost it
        shared.publish(folder.parent.name, job.key, folder)
    return folder.parent.name


def _receive(payload: dict[str, Any], store: Store, shared: ObjectStore) -> dict[str, Any]:
    """Return the payload with files of this host in place of hashes. Raises RigFailure."""

    def received(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if set(value) != {"sha256", "suffix"}:
            return {name: received(inner) for name, inner in value.items()}
        name = f"file{value['suffix']}"
        folder = store.obtain(value["sha256"], lambda scratch: shared.receive(value["sha256"], scratch / name), 600.0)
        return str(Path(folder) / name)

    return {name: received(value) for name, value in payload.items()}
