"""Start asv with the settings of its benchmarks, and end it with all its child processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_runner.device import Identity
from device_runner.failures import DeviceBusy, RigFailure
from device_runner.files import scratch_folder, write_whole
from device_runner.lease import lease
from device_runner.registry import in_use
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.process import Listener, bound, end_family
from harness.base.request import QUIRK_STATES
from harness.base.suite import load_suite
from harness.base.terminal import write
from harness.judge.history import asv_process
from harness.judge.history.results import newest_records, record_files, state_of_quirks
from harness.judge.revisions.repository import build_variables, configuration
from harness.measure.progress import STILL, Silence
from harness.measure.records.record import Record, RecordFile

ASV_SOME_FAILED = 2
FRONT_PAGE = "asv's own front page is in place of ours; `adreno-bench history publish` writes both"
"""asv's line after `asv publish`."""
LONGEST_SILENCE_S = 4 * 3600.0
"""asv prints a line for every commit that it installs and every benchmark that it runs. Building TVM is the longest."""
POLL_S = 1.0
END_S = 30.0
"""Seconds that a process may take to end after its output has ended."""

_ASV = bound("from asv.main import main; main()")
"""Our benchmarks in turn end with asv."""


@dataclass(frozen=True)
class Project:
    """Content of an asv configuration, with absolute paths."""

    config: Path
    results: Path
    html: Path
    environments: Path


def load_project(config: Path) -> Project:
    """Read an asv configuration. Raises SetupMissing without asv, UsageError for a file that is not one."""
    conf = configuration(config)
    home = config.resolve().parent
    return Project(config.resolve(), home / conf.results_dir, home / conf.html_dir, home / conf.env_dir)


def machine_of(identity: Identity) -> dict[str, str]:
    """Return what asv keeps of a machine. Its own fields come first, then ours, which it publishes just the same."""
    return {
        "machine": identity.key,
        "os": identity.rom,
        "arch": identity.abi,
        "cpu": identity.soc,
        "num_cpu": "",
        "ram": "",
        "gpu": identity.gpu,
        "driver": identity.driver,
        "clml": identity.clml,
        "emulated": ", ".join(identity.emulated),
    }


def register(identity: Identity, name: str = "") -> str:
    """Write the machine into asv's file of the user and return its name: the identity's key if none is given.

    Replaces an entry of this name that was written by hand. Raises UsageError if that file is not asv's.
    """
    from asv.machine import MachineCollection
    from asv.util import UserError

    machine = machine_of(identity) | ({"machine": name} if name else {})
    try:
        MachineCollection.save(machine["machine"], machine)
    except (UserError, TypeError, AttributeError) as error:
        file = MachineCollection.get_machine_file_path()
        raise UsageError(f"{file} cannot be read by asv: {error}", hint="correct it or move it away") from error
    return machine["machine"]


@dataclass(frozen=True)
class HistoryRequest:
    """Arguments of `history run`."""

    device: str
    suite: Path | None
    commits: str
    """Commits in asv's notation; empty for the heads of the configured branches."""
    record_samples: bool = True
    skip_existing: bool = True
    everywhere: Collection[str] = ()
    """Ids of cases that every commit measured before has to have; empty to leave those commits as they are."""
    options: Sequence[str] = ()
    """Passed on to `asv run`."""


@dataclass(frozen=True)
class RunResult:
    """What one run added to a history."""

    records: list[Record]
    not_installed: list[str]
    """The first digits of commits that could not be built or installed."""


def run(project: Project, request: HistoryRequest, identity: Identity) -> RunResult:
    """Measure with asv. Raises DeviceBusy, RigFailure, UsageError.

    Cases of earlier runs that found no device come first, whatever `commits` are.
    """
    with _exclusive(project):
        machine = register(identity)
        folder = project.results / machine
        folder.mkdir(parents=True, exist_ok=True)
        before = {file: file.stat().st_size for file in record_files(folder)}
        without = set(_without_records(folder))
        variables = _variables(request, identity, folder)
        if open_ones := reopen_commits(folder, request.everywhere):
            with scratch_folder() as scratch:
                hashes = write_whole(scratch / "commits.txt", "\n".join(open_ones))
                _asv(project, _arguments(machine, request, f"HASHFILE:{hashes}"), variables)
        code = _asv(project, _arguments(machine, request, request.commits), variables)
        records = new_records(folder, before)
    missing = _without_records(folder)
    if code == ASV_SOME_FAILED and not records and missing:  # without, all was measured by a run that was killed
        raise RigFailure("asv measured nothing: a commit could not be installed", hint="its output above says why")
    return RunResult(records, [name for name in missing if name not in without])


def new_records(folder: Path, before: Mapping[Path, int]) -> list[Record]:
    """Return the newest record of each case at each commit, beyond the first `before` bytes of a file.

    Each commit has a file.
    """
    return [
        r for file in record_files(folder) for r in newest_records(RecordFile(file).load(before.get(file, 0)).records)
    ]


def _without_records(folder: Path) -> list[str]:
    """Return commits of which asv has a file and we have none: no process of theirs ever ran."""
    ours = {file.stem for file in folder.iterdir() if file.suffix != ".json"} if folder.is_dir() else set()
    return [file.name.split("-", 1)[0] for file in sorted(folder.glob("*-*.json")) if file.stem not in ours]


def reopen_commits(folder: Path, everywhere: Collection[str] = ()) -> list[str]:
    """Make commits ready to be taken up again some of whose cases met no device or have no record; return them.

    asv skips what it has results of, failed ones too; so its file of such a commit goes, and our records stay: what
    they settle is not measured again.
    """
    commits, every_series = [], set(itertools.product(everywhere, QUIRK_STATES))
    for file in record_files(folder):
        newest = newest_records(RecordFile(file).load().records)
        had = {(record.case, state_of_quirks(as_shipped=record.as_shipped)) for record in newest}
        if all(record.outcome.conclusive for record in newest) and had >= every_series:
            continue
        with contextlib.suppress(FileNotFoundError):
            file.with_suffix(".json").unlink()
        commits.append(file.name.split("-", 1)[0])
    return commits


@contextlib.contextmanager
def _exclusive(project: Project) -> Iterator[None]:
    """Hold the project's lock: two runs would write the same environments and results."""
    name = "asv"
    try:
        with lease(name, project.environments.parent, timeout_s=0):
            yield
    except DeviceBusy as busy:
        if not busy.message.startswith(f"{name} "):
            raise
        raise RigFailure(f"another history of {project.config} is running: {busy.message}", hint=busy.hint) from None


def _variables(request: HistoryRequest, identity: Identity, folder: Path) -> dict[str, str]:
    chosen = {
        asv_process.DEVICE: request.device,
        asv_process.IDENTITY: asv_process.identity_to(identity),
        asv_process.RECORDS: str(folder.resolve()),
        asv_process.REUSE: "1" if request.skip_existing else "",
    }
    return chosen | ({asv_process.SUITE: str(request.suite.resolve())} if request.suite else {})


def _arguments(machine: str, request: HistoryRequest, commits: str) -> list[str]:
    options = ["--machine", machine, "--show-stderr"]
    options += ["--record-samples"] if request.record_samples else []
    options += ["--skip-existing"] if request.skip_existing else []
    return ["run", *options, *request.options, *([commits] if commits else [])]


def _asv(project: Project, arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run asv to its end. Raises RigFailure if it ends with more to say than that some cases failed."""
    suite = variables.get(asv_process.SUITE)
    silence_s = max(LONGEST_SILENCE_S, 2 * load_suite(Path(suite)).longest_case_s if suite else 0.0)
    code = asv(project, arguments, variables, silence_s=silence_s, going_on=_on_devices)
    if code not in (0, ASV_SOME_FAILED):
        raise RigFailure(f"`asv {arguments[0]}` ended with code {code}", hint="its output above says why")
    return code


def _on_devices() -> str:
    """Return what is done on devices of this host, for asv swallows what its benchmarks say."""
    leases = in_use(cache_root()).items()
    return "; ".join(f"{name}: {' '.join((by.case, by.step))}" for name, by in leases if by.step)


def asv(
    project: Project,
    arguments: Sequence[str],
    variables: Mapping[str, str] | None = None,
    output: Callable[[str], None] | None = None,
    *,
    silence_s: float = LONGEST_SILENCE_S,
    going_on: Callable[[], str] = str,
) -> int:
    """Run an asv command on a project and return its exit code. It ends with this process, and so do its children.

    `output` gets each line that asv prints; without it, the lines go to standard output. During a silence the text of
    `going_on` is printed now and then, unless it is empty. Raises RigFailure after a silence of `silence_s`: asv prints
    a line at every step.
    """
    with scratch_folder() as temporary:  # asv leaves its own there if it is killed
        process = subprocess.Popen(
            [sys.executable, *_ASV, "--config", str(project.config), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **build_variables(project.environments), **(variables or {}), "TMPDIR": str(temporary)},
            start_new_session=True,
            text=True,
        )
        assert process.stdout
        silence, line_sink = Silence(), output or write

        def hear(line: str) -> None:
            silence.broken()
            line_sink(line)

        heard = Listener(process.stdout, hear)
        try:
            while heard.reading:
                if time.monotonic() - heard.heard_at > silence_s:
                    hint = "check the disk and the network, and run it again"
                    raise RigFailure(f"`asv {arguments[0]}` printed nothing for {silence_s:.0f} s", hint=hint)
                if silence.too_long and (what := going_on()):
                    line_sink(f"{STILL}{what}")
                heard.join(POLL_S)
            return process.wait(END_S)
        finally:
            if process.poll() is None:
                end_family(process.pid)
                process.wait()
            heard.join(END_S)
