"""The runner of a bundle: runs every turn on the machine that it is started on, and writes the results folder.

    python3 run.pyz [RESULTS]

It needs Python 3.10 or newer, numpy, and an OpenCL driver. Each turn has a process of its own for the device, so what
crashes or hangs takes its turn with it and no other; each line of results is on the disk before the next turn begins.
Started again with the same results folder, it goes on where it was cut short.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from device_runner.direct.device import DirectDevice
from device_runner.disk import disk_full
from device_runner.failures import Failure, RigFailure
from harness.bundle.chain import END, PEAKS, TURN, TURNS, Broken, line_of, lines_of
from harness.bundle.manifest import MANIFEST, Build, Manifest, Turn, built_of, check_files, id_of, manifest_of, plan_of
from harness.cases.plan import unsupported
from harness.failures import UsageError
from harness.run.context import Run
from harness.run.loop import run_case
from harness.run.outcome import Outcome
from harness.run.progress import Silent
from harness.run.tuning import TuningStore

DEVICE = "bundle"
"""What records of a bundle say that a person typed after `--device`."""
PEAKS_TIMEOUT_S = 120.0
GOOD, USAGE, RIG_FAILURE = 0, 2, 4
"""As the exit codes of adreno-bench; what the turns found is told by `adreno-bench ingest`."""


def start() -> NoReturn:
    """Begin as a program: a signal that ends it lets it end its processes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda which, _: sys.exit(128 + which))
    main()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the bundle that this file is part of."""
    parser = argparse.ArgumentParser(prog="run.pyz", description="Run every case of this bundle on this machine.")
    parser.add_argument("results", nargs="?", default="results", help="the folder to write (default: results)")
    parser.add_argument("--bundle", default=str(Path(sys.argv[0]).resolve().parent), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        require_numpy()
        run_bundle(Path(given.bundle), Path(given.results), _say)
    except KeyboardInterrupt:
        _end(f"stopped; run it again with the same folder to go on: {given.results}", 130)
    except UsageError as failure:
        _end(str(failure), USAGE)
    except Failure as failure:
        _end(f"{failure}\n{failure.evidence}".strip(), RIG_FAILURE)
    except OSError as error:
        _end(str(disk_full(error, Path(given.results), otherwise="") or error), RIG_FAILURE)
    sys.exit(GOOD)


def run_bundle(folder: Path, results: Path, say: Callable[[str], None]) -> None:
    """Run the turns that the results folder does not have yet.

    Raises UsageError for a bundle or results that are not whole, SetupMissing without OpenCL, OSError.
    """
    text = (folder / MANIFEST).read_bytes()
    manifest = manifest_of(text)
    check_files(folder, manifest)
    log = Log.opened(results, text)
    todo = list(manifest.turns)[log.done :]
    say(f"{len(manifest.turns)} turns, {log.done} done before" if log.done else f"{len(manifest.turns)} turns")
    with _work(results) as work:
        devices = {name: _device(folder, build, work / name) for name, build in manifest.builds.items()}
        for number, turn in enumerate(todo, log.done + 1):
            run = _run(devices[turn.build], manifest.builds[turn.build], work / turn.build, log.run)
            known = _known(manifest, turn, folder, run)
            log.add({"kind": TURN, "turn": turn, "record": known})
            say(f"{number}/{len(manifest.turns)} {turn.build} {turn.case}: {_told(known)}")
        if not log.ended:
            log.add({"kind": PEAKS, "peaks": _peaks(next(iter(devices.values())))})
            log.add({"kind": END})
    say(f"done; give {results} to `adreno-bench ingest`")


def _known(manifest: Manifest, turn: Turn, folder: Path, run: Run) -> dict[str, Any]:
    """What a turn comes to. The device is asked who it is before anything is run on it."""
    packed = manifest.packed(turn)
    plan = plan_of(packed)
    plan = replace(plan, unsupported=unsupported(plan.case, run.device.identity))
    recording = run_case(plan, built_of(packed, folder, manifest.files), run, Silent())
    return {**recording.fields, "recovery": []}


def _run(device: DirectDevice, build: Build, work: Path, run_id: str) -> Run:
    return Run(device, TuningStore(work), build.as_shipped, id=run_id, made_by=build.made_by)


def _device(folder: Path, build: Build, root: Path) -> DirectDevice:
    loader = [build.loader] if build.loader and not _has_loader() else []
    libraries = [folder / path for path in (*loader, *build.libraries)]
    probe = folder / build.probe if build.probe else None
    return DirectDevice(DEVICE, root, libraries, probe, build.runtime)


def _has_loader() -> bool:
    """Whether this machine has an OpenCL loader of its own."""
    with suppress(OSError):
        return bool(ctypes.CDLL("libOpenCL.so.1"))
    return False


def _peaks(device: DirectDevice) -> dict[str, float]:
    """What the device does at best; empty if that cannot be measured."""
    try:
        with device.session({}, timeout_s=PEAKS_TIMEOUT_S) as session:
            return dict(session.opencl_peaks(timeout_s=PEAKS_TIMEOUT_S))
    except Failure:
        return {}


@contextmanager
def _work(results: Path) -> Iterator[Path]:
    """Where tuning and the like are kept while the bundle runs, and taken up again."""
    work = results.resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    yield work


@dataclass
class Log:
    """The lines of a results folder."""

    file: Path
    link: str
    run: str
    """Text common to all records of this results folder."""
    done: int = 0
    """Turns that are over."""
    ended: bool = False

    @classmethod
    def opened(cls, results: Path, manifest: bytes) -> Log:
        """Begin a results folder, or take one up. Raises UsageError for one of another bundle, or that was changed."""
        results.mkdir(parents=True, exist_ok=True)
        kept, file = results / MANIFEST, results / TURNS
        if not kept.exists():
            kept.write_bytes(manifest)
        if kept.read_bytes() != manifest:
            raise UsageError(f"{results} is of another bundle", hint="name another folder for the results")
        bundle = id_of(manifest)
        log = cls(file, bundle, f"{bundle[:6]}{os.urandom(3).hex()}")
        log._take_up()
        return log

    def _take_up(self) -> None:
        content = self.file.read_bytes() if self.file.exists() else b""
        whole = content.rfind(b"\n") + 1
        try:
            for told, link in lines_of(content[:whole], self.link):
                self.link = link
                self.done += told["kind"] == TURN
                self.run = told["record"]["run"] if told["kind"] == TURN else self.run
                self.ended |= told["kind"] == END
        except Broken as broken:
            raise UsageError(f"{self.file}: {broken}", hint="name another folder for the results") from None
        if whole < len(content):  # the line that was being written when it was cut short
            os.truncate(self.file, whole)

    def add(self, told: dict[str, Any]) -> None:
        """Write a line durably, whole or not at all. Raises OSError."""
        line, link = line_of(told, self.link)
        with self.file.open("ab", buffering=0) as file:
            began = file.tell()
            try:
                view = memoryview(line)
                while view:
                    view = view[file.write(view) or 0 :]
                os.fsync(file.fileno())
            except OSError:
                os.truncate(self.file, began)
                raise
        self.link = link


def _told(known: dict[str, Any]) -> str:
    """One turn in a few words."""
    if known["outcome"] is not Outcome.OK:
        return f"{Outcome(known['outcome']).value}: {known['message']}"
    times = sorted(known.get("wall_ms") or [0.0])
    return f"ok, {times[len(times) // 2]:.4g} ms"


def _say(text: str) -> None:
    sys.stderr.write(f"[{time.strftime('%H:%M:%S')}] {text}\n")
    sys.stderr.flush()


def _end(text: str, code: int) -> NoReturn:
    sys.stderr.write(f"run.pyz: {text}\n")
    sys.exit(code)


def require_numpy() -> None:
    """Raise RigFailure with what to do where numpy is missing."""
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise RigFailure(
            f"this Python has no numpy ({sys.executable})", hint="start run.pyz with one that has"
        ) from error
