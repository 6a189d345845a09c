"""Building: worker processes under a deadline and a memory limit, and a store that makes each thing once.

A compiler that crashes, hangs or eats all memory is an outcome of the case and never a crash of ours.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from device_runner.device import Loadable
from device_runner.disk import disk_full, nearly_full
from device_runner.failures import Failure, RigFailure
from device_runner.files import is_name
from device_runner.names import load
from device_runner.store import Store, sha256_of
from harness.base import failures
from harness.base.failures import revived
from harness.base.plan import Job
from harness.base.process import cores
from harness.base.suite import Limits
from harness.base.tool import place_of
from harness.compile.artifacts.artifact import (
    FAILURE,
    LIBRARY,
    MANIFEST,
    RESULT,
    STEP,
    Answers,
    Artifact,
    CompileResult,
)
from harness.compile.artifacts.forks import GRACE_S, Fork, Forks
from harness.compile.artifacts.kinds import job_kind

STDERR_TAIL_BYTES = 8_192
LOOK_EVERY_S = 1.0
"""Pause between two looks at the compiler's step."""


REPEATABLE = (
    failures.CompileFailure.outcome,
    failures.InputRefused.outcome,
    failures.NoOutsideAnswer.outcome,
    failures.OracleNotFinite.outcome,
)
"""Outcomes that the same input gives again, unless it was a limit of ours that was met."""

Watcher = Callable[[str, str, float], None]
"""Told (title of a job, state, seconds): `queued`, `building`, the compiler's steps (`building: lower`), then `built`,
`built elsewhere`, `reused` or `failed`."""


class SharedStore(Protocol):
    """A store that hosts share, behind the local one. Any thread may use it."""

    def fetch(self, kind: str, key: str, folder: Path) -> bool:
        """Fill an empty folder with the files of an entry; whether there was one."""

    def publish(self, kind: str, key: str, folder: Path) -> bool:
        """Write an entry of the local store back; whether it was."""


def shared_store(url: str | None, say: Callable[[str], object]) -> SharedStore | None:
    """Return the store of a URL, which tells `say` what is wrong with it; None without one.

    Raises UsageError, SetupMissing.
    """
    if not url:
        return None
    store: SharedStore = load(place_of("shared_store"))(url, say)
    return store


class RemoteBuilders(Protocol):
    """Other hosts that build."""

    jobs: int
    """How many jobs may wait for them at once."""

    def takes(self, job: Job) -> bool:
        """Return whether they can do a job."""

    def make(self, job: Job, limits: Limits, folder: Path, place: int) -> None:
        """Have a job done, and fill an empty folder with its entry. Raises its failure.

        The job that was asked for first has the lowest place.
        """

    def close(self) -> None:
        """Stop waiting."""


class Builder:
    """Makes jobs, at most one worker for each core that we may use, each thing once.

    A context manager: leaving it, also by Ctrl-C, ends every worker.
    """

    def __init__(
        self,
        root: Path,
        limits: Limits,
        *,
        processes: int | None = None,
        watch: Watcher = lambda *_: None,
        forks: Forks | None = None,
        shared: SharedStore | None = None,
        remote: RemoteBuilders | None = None,
    ) -> None:
        """Open the pool.

        `forks` stands in for those of the compiler's process. `shared` is asked before anything is made, and given what
        was. Hosts `remote` do what they can in place of this one.
        """
        self._root = root
        self._libraries, self._answers = Store(root, "artifacts"), Store(root, "oracles")
        self._limits = limits
        self._shared, self._elsewhere = shared, remote
        self._watch = watch
        self._forks = forks or Forks()
        threads = remote.jobs if remote else processes or cores()
        self._pool: Executor = ThreadPoolExecutor(threads, thread_name_prefix="build")
        self._cores = threading.Semaphore(processes or cores())
        self._places = itertools.count()
        self._closed = False

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._forks.close()
        if self._elsewhere:
            self._elsewhere.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def build(self, jobs: Iterable[Job]) -> dict[str, Artifact | Answers | Failure]:
        """Make all jobs; return the result of each by key. A failure of one is a value, not an exception."""
        futures = {key: self.begin(job) for key, job in {job.key: job for job in jobs}.items()}
        return {key: future.result() for key, future in futures.items()}

    def begin(self, job: Job) -> Future[Artifact | Answers | Failure]:
        """Make a job in the background."""
        self._watch(job.title, "queued", 0.0)
        return self._pool.submit(self._make, job, next(self._places))

    def _make(self, job: Job, place: int) -> Artifact | Answers | Failure:
        began = time.monotonic()
        try:
            result, state = self._find_or_make(job, place)
        except Failure as failure:
            result, state = failure, "failed"
        if isinstance(result, (failures.NoOutsideAnswer, failures.CompileFailure)) and job.otherwise:
            self._watch(job.title, state, time.monotonic() - began)
            return _unchecked(self._make(job.otherwise, place), result.message)
        if not self._closed:  # what was stopped has not failed
            self._watch(job.title, "failed" if isinstance(result, Failure) else state, time.monotonic() - began)
        return result

    def find(self, job: Job) -> Artifact | Answers | Failure | None:
        """Return the earlier result of a job; None if it was never made. Raises RigFailure if that is damaged."""
        folder = self._store(job).find(job.key)
        return _read(job, folder, reused=True) if folder else None

    def artifact(self, key: str) -> Artifact | None:
        """Return an artifact of an earlier build, of another host if need be; None if no store has it.

        Raises RigFailure if it is damaged.
        """
        artifact, store = load_artifact(self._root, key), self._libraries
        if artifact or not self._shared or not is_name(key):
            return artifact
        with store.making(key, self._limits.build_s + GRACE_S) as scratch:
            self._shared.fetch(store.kind, key, scratch)
        return load_artifact(self._root, key)

    def _store(self, job: Job) -> Store:
        return self._libraries if job_kind(job.kind).library else self._answers

    def _find_or_make(self, job: Job, place: int) -> tuple[Artifact | Answers | Failure, str]:
        store = self._store(job)
        state = "reused"

        def make(scratch: Path) -> None:
            nonlocal state
            if self._shared and self._shared.fetch(store.kind, job.key, scratch):
                return
            self._watch(job.title, "building", 0.0)
            if self._elsewhere and self._elsewhere.takes(job):
                state = "built elsewhere"
                self._elsewhere.make(job, self._limits, scratch, place)
                return
            state = "built"
            with self._cores:
                self._work(job, scratch)

        folder = store.obtain(job.key, make, self._limits.build_s + GRACE_S)
        if self._shared and state == "built":
            self._shared.publish(store.kind, job.key, folder)
        return _read(job, folder, reused=state != "built"), state

    def _work(self, job: Job, scratch: Path) -> None:
        """Run the worker; leaves an entry in `scratch`, or raises a Failure that must not be kept."""
        job_file = scratch / "job.json"
        memory_bytes = int(self._limits.build_memory_gb * 1e9)
        kind = job_kind(job.kind)
        who = {"kind": job.kind, "place": kind.place, "author": kind.author}
        details = {**who, "out": str(scratch), "memory_bytes": memory_bytes}
        job_file.write_text(json.dumps({**job.payload, **details}), encoding="utf-8")
        log = scratch / "stderr.log"
        began = time.monotonic()
        code = self._run(job, job_file, log)
        evidence = _tail(log)
        step = scratch / STEP
        at = f", in {step.read_text(encoding='utf-8', errors='replace')[:200]}" if step.exists() else ""
        if code is None:
            raise failures.CompileTimeout(
                f"{kind.author} did not end within {self._limits.build_s:.0f} s{at}",
                hint="raise limits.build_s in the suite file",
                evidence=evidence,
            )
        if code < 0:
            name = signal.Signals(-code).name
            if job.kind == "oracle" and -code == signal.SIGFPE:
                raise failures.InputRefused(
                    f"the network divides an integer by 0, of which {kind.author}'s process died ({name})",
                    hint="give inputs without 0: `--input 'NAME=integers(1, 9)'`, or a file of them",
                    evidence=evidence,
                )
            raise _death(f"{kind.author}'s process died of {name}{at}", evidence, scratch)
        _keep(job, scratch, evidence, time.monotonic() - began)
        job_file.unlink()
        for file in (log, scratch / STEP):
            file.unlink(missing_ok=True)

    def _run(self, job: Job, job_file: Path, log: Path) -> int | None:
        """Exit code of the worker, None if it had to be ended at its deadline."""
        worker = self._forks.start(job_file, log)
        try:
            return self._wait(job, worker, job_file.with_name(STEP))
        finally:
            worker.end()

    def _wait(self, job: Job, worker: Fork, step_file: Path) -> int | None:
        """Return the exit code, None at the deadline. Meanwhile report each step of the compiler."""
        began, last = time.monotonic(), ""
        while (left_s := began + self._limits.build_s - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                return worker.wait(min(LOOK_EVERY_S, left_s))
            with contextlib.suppress(OSError):
                step = step_file.read_text(encoding="utf-8")
                if step and step != last:
                    last = step
                    self._watch(job.title, f"building: {step}", time.monotonic() - began)
        return None


def _unchecked(result: Artifact | Answers | Failure, why: str) -> Artifact | Answers | Failure:
    """Return LLVM's answers, or its failure, with why nobody outside TVM gave the right ones."""
    if isinstance(result, failures.CompileFailure):
        result.hint = f"nobody outside TVM computes this network either: {why}"
    return dataclasses.replace(result, unchecked=why) if isinstance(result, Answers) else result


def load_artifact(root: Path, key: str) -> Artifact | None:
    """Return an artifact of an earlier build, None if it is not in the store. Raises RigFailure if it is damaged."""
    folder = Store(root, "artifacts").find(key)
    artifact = _read(Job("compile", key, key, {}), folder, reused=True) if folder else None
    return artifact if isinstance(artifact, Artifact) else None


def _tail(log: Path) -> str:
    """Return the end of what a worker printed; empty if it was ended before it was forked."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - STDERR_TAIL_BYTES))
        return file.read().decode(errors="replace")


def _death(message: str, evidence: str, scratch: Path) -> Failure:
    """Whose it is that a worker died: the compiler's, or that of a disk on which it found no room."""
    full = disk_full(evidence, scratch.parent) or nearly_full(evidence, scratch.parent)
    return full or failures.CompilerCrash(message, evidence=evidence)


def _keep(job: Job, scratch: Path, evidence: str, seconds: float) -> None:
    """Turn what the worker left into an entry. What the same input gives again is kept, though it is a failure."""
    try:
        result = json.loads((scratch / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _death(f"{job_kind(job.kind).author}'s process ended without a result", evidence, scratch) from None
    if description := result.get("failure"):
        description["evidence"] = f"{evidence}\n{description['evidence']}".strip()
        failure = revived(description)
        if failure.outcome not in REPEATABLE or isinstance(failure, failures.CompileOutOfMemory):
            raise failure
        (scratch / LIBRARY).unlink(missing_ok=True)
        (scratch / FAILURE).write_text(json.dumps(description), encoding="utf-8")
    elif job_kind(job.kind).library:
        manifest = {**result["done"], "sha256": sha256_of(scratch / result["done"]["library"]), "worker_s": seconds}
        (scratch / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    (scratch / RESULT).unlink()
    (scratch / "title").write_text(f"{job.title}\n", encoding="utf-8")


def _read(job: Job, folder: Path, *, reused: bool) -> Artifact | Answers | Failure:
    """Return what an entry says. A damaged one is nobody's result: raises RigFailure."""
    try:
        if (folder / FAILURE).exists():
            return revived(json.loads((folder / FAILURE).read_text(encoding="utf-8")))
        if not job_kind(job.kind).library:
            return Answers(folder, reused)
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        library = folder / Path(manifest["library"]).name
        fields = {field.name for field in dataclasses.fields(CompileResult)}
        compiled = CompileResult(**{name: value for name, value in manifest.items() if name in fields})
        loadable = Loadable(library, manifest["sha256"], compiled.vdevices)
        return Artifact(job.key, loadable, compiled, library.stat().st_size, reused)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RigFailure(
            f"the entry {job.key} of the store is damaged ({type(error).__name__}: {error})",
            hint=f"remove {folder} and run again",
        ) from error
