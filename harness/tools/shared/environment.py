"""The Python environment that holds one revision of the compiler: made once, kept in the cache under what went in.

<cache>/toolchains/<key>/            made by asv (`harness.tools.shared.install`)
<cache>/toolchains/<key>/made.json   written last; a folder without it was torn, and is made anew
<cache>/toolchains/<key>.log         what making it printed
<cache>/toolchains/.building/        checkout and objects of the commit that is being built, one at a time

Every commit is built in that one folder, because what ccache kept is found again for the same paths only: a precompiled
header holds the absolute paths of what is in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from device_runner.deadline import Deadline
from device_runner.disk import OTHER_DISK, disk_full, nearly_full
from device_runner.failures import DiskFull, RigFailure
from device_runner.files import scratch_folder
from device_runner.store import Store, keep, key_of
from harness.base.process import bound, end_family
from harness.base.tables import counted, size
from harness.judge.revisions.repository import configuration
from harness.measure.progress import duration
from harness.tools.shared.revisions import Revision

KIND = "toolchains"
DONE_FILE = "made.json"
BUILDING = ".building"
LOG_TAIL_BYTES = 8_192
LOOK_S = 5.0
"""How often it is said what pip has."""
_INSTALL = "import sys; from harness.tools.shared.install import main; main(*sys.argv[1:])"
_COMMANDS = 6
"""How many deadlines of the configuration making may take: environment, tools, uninstall, build, install."""
ROOM_BYTES = 4 << 30
"""A commit of TVM takes less: its checkout, 600 object files, the wheel, and the environment it is installed in."""


class InstallFailure(RigFailure):
    """A revision could not be built or installed; the end of what was printed is the evidence."""


def environment(revision: Revision, cache: Path, say: Callable[[str], None] = lambda _: None) -> Path:
    """Return the interpreter of a revision's environment, which is made if it is not there.

    Raises InstallFailure, and DiskFull, of which no revision is guilty.
    """
    store = Store(cache, KIND, sums=False)
    conf = configuration(revision.source.config)
    key = _key(revision, conf)
    folder = (store.folder / key).resolve()  # what is compiled against an environment is kept under its path
    if existing := _find_python(folder):
        store.find(key)  # used now
        keep(folder)
        return existing
    (store.folder / ".locks").mkdir(parents=True, exist_ok=True)
    deadline_s = _COMMANDS * float(conf.install_timeout)
    try:
        with FileLock(store.folder / ".locks" / f"{key}.lock", timeout=deadline_s):
            python = _find_python(folder)  # another run may have made it while this one waited
            if python is None:
                with _build_folder(revision, store, deadline_s):
                    say(f"{revision}: installing it, for at most {duration(deadline_s)}")
                    python = _make(revision, folder, deadline_s, say)
            keep(folder)
            return python
    except Timeout:
        raise RigFailure(f"another run has been installing {revision} for {deadline_s:.0f} s", hint="end it") from None


@contextlib.contextmanager
def _build_folder(revision: Revision, store: Store, deadline_s: float) -> Iterator[None]:
    """Yield the folder that commits are built in, nobody else's until this ends. Releases are not built."""
    if revision.source.released:
        yield
        return
    with FileLock(store.folder / ".locks" / f"{BUILDING}.lock", timeout=deadline_s):
        try:
            yield
        finally:
            shutil.rmtree(store.folder / BUILDING, ignore_errors=True)


def _key(revision: Revision, conf: Any) -> str:
    fields = ("build_command", "install_command", "environment_type", "pythons", "matrix", "repo_subdir")
    facts = {name: getattr(conf, name, None) for name in fields}
    return key_of({**facts, "commit": revision.commit, "python": sys.version, "mark": not revision.source.released})


def _find_python(folder: Path) -> Path | None:
    try:
        python = folder / json.loads((folder / DONE_FILE).read_text(encoding="utf-8"))["python"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return python if python.exists() else None


def packages_so_far(scratch: Path) -> str:
    """Return how many packages pip has in its folder for temporary files, and the last of them; empty without any."""
    sizes: dict[str, int] = {}
    with contextlib.suppress(OSError):  # pip moves them while we look
        wheels = sorted(scratch.rglob("*.whl"), key=lambda file: file.stat().st_mtime)
        sizes = {file.name.partition("-")[0]: file.stat().st_size for file in wheels}
    if not sizes:
        return ""
    last = next(reversed(sizes))
    return f"pip has {counted(len(sizes), 'package')}, the last is {last} ({size(sizes[last])} so far)"


def _wait(process: subprocess.Popen[bytes], deadline_s: float, look: Callable[[], None]) -> None:
    """Wait for a process, and look at it every few seconds. Raises TimeoutExpired."""
    deadline = Deadline(deadline_s)
    while process.poll() is None:
        try:
            process.wait(min(LOOK_S, deadline.remaining_s))
        except subprocess.TimeoutExpired:
            look()
            if not deadline.remaining_s:
                raise


def _make(revision: Revision, folder: Path, deadline_s: float, say: Callable[[str], None]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    if not revision.source.released:
        require_room(folder.parent)
    log = folder.with_suffix(".log")
    mark = "" if revision.source.released else revision.commit
    source = revision.source
    command = [
        *(sys.executable, *bound(_INSTALL)),
        *(str(source.config), str(source.repo), revision.commit, str(folder), mark),
    ]
    heard: list[str] = []

    def look(scratch: Path) -> None:
        if (text := packages_so_far(scratch)) and text not in heard:
            heard.append(text)
            say(f"{revision}: {text}")

    with log.open("wb") as output, scratch_folder() as scratch:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            _wait(process, deadline_s, partial(look, scratch))
        except subprocess.TimeoutExpired:
            raise InstallFailure(
                f"{revision} was not installed within {deadline_s:.0f} s", hint=f"read {log}", evidence=_tail(log)
            ) from None
        finally:
            if process.poll() is None:
                end_family(process.pid)
                process.wait()
    python = _find_python(folder)
    if process.returncode or python is None:
        full = disk_full(_tail(log), folder) or nearly_full(_tail(log), folder)
        shutil.rmtree(folder, ignore_errors=True)
        raise full or InstallFailure(
            f"{revision} cannot be built or installed: {_complaint(log)}", hint=f"read {log}", evidence=_tail(log)
        )
    (folder / "title").write_text(f"{revision}\n", encoding="utf-8")
    return python


def _complaint(log: Path) -> str:
    """Return the last line of the log, in which `harness.tools.shared.install` says what was wrong."""
    lines = [line.strip() for line in _tail(log).splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was printed"


def _tail(log: Path) -> str:
    return log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")


def require_room(folder: Path) -> None:
    """Raise DiskFull if there is no room for a build."""
    free = shutil.disk_usage(folder).free
    if free < ROOM_BYTES:
        need = f"{ROOM_BYTES / 1e9:.1f} GB for a commit of TVM, and {free / 1e9:.1f} GB free in {folder}"
        raise DiskFull(f"too little room to build: up to {need}", hint=f"`adreno-bench cache --prune`, {OTHER_DISK}")
