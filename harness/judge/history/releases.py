"""A folder in which asv runs over TVM's releases like over the commits of any project.

The harness comes from this checkout, the same for every release, as a wheel whose folder is named by its content: a
changed harness is another install command, which makes asv install again.

    <folder>/repo             the repository
    <folder>/asv.conf.json    made anew each time
    <folder>/constraints.txt  what requirements.lock pins, but for TVM
    <folder>/harness          the wheel
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from device_runner.failures import RigFailure
from device_runner.files import scratch_folder
from harness.base.failures import UsageError
from harness.base.process import complaint_of
from harness.base.tool import tools
from harness.compile.artifacts.keys import digest
from harness.compile.compiler.releases import RELEASES, find_release
from harness.judge.revisions.git import call, git
from harness.judge.revisions.repository import PINS, commit, init, write_configuration

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
PIP_TIMEOUT_S = 600.0
_HARNESS_SOURCES = ("harness", "device_runner", "pyproject.toml", "README.md", "LICENSE")


def checkout() -> Path:
    """Return the source tree that this harness runs from. Raises UsageError if it was installed without one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "asv_suite").is_dir():
        raise UsageError(
            "the releases' history needs this project's source tree: the suites are not part of the package",
            hint="run it from a clone with `pip install -e .`",
        )
    return root


def maintain(folder: Path, releases: Sequence[str], say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Make the repository, or add releases to it, and write asv's configuration. Returns what was added.

    Raises UsageError for a release that is not known, has no wheel for this Python or lies before one that is there;
    RigFailure if git or pip fail.
    """
    releases = [_find_release(word) for word in releases]
    root, folder = checkout(), folder.resolve()
    repo = folder / "repo"
    init(repo)
    have = git(repo, "tag", "--list", "--sort=creatordate").split()
    line = [release for release in RELEASES if release in have or release in releases]
    added = line[len(have) :]
    if line[: len(have)] != have:
        early = next(release for release in line if release not in have)
        raise UsageError(
            f"{early} was released before {have[-1]}, which the history in {folder} has already",
            hint="name all releases at once with another --folder",
        )
    for number, release in enumerate(added, 1):
        say(f"asking pip for a wheel of {release} ({number} of {len(added)})")
        _require_wheel(release)
        commit(repo, release)
    say("making a wheel of this harness")
    _configure(folder, root)
    return added


def _find_release(word: str) -> str:
    if release := find_release(word):
        return release
    hint = f"the releases are {', '.join(RELEASES)}"
    raise UsageError(f"no tvm-ffi is known that works with apache-tvm {word}", hint=hint)


def _require_wheel(release: str) -> None:
    asked = [*PIP, "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed", *RELEASES[release].pins]
    done = call(asked, Path.cwd(), PIP_TIMEOUT_S)
    if done.returncode:
        python = ".".join(map(str, sys.version_info[:2]))
        raise UsageError(
            f"pip cannot install apache-tvm {release} for Python {python} here: {complaint_of(done)}",
            hint="check the package index, and whether the release has a wheel for this Python",
            evidence=done.stderr,
        )


def _configure(folder: Path, root: Path) -> None:
    """Write what asv needs. All paths are absolute: asv runs in the configuration's folder."""
    constraints, wheel = folder / "constraints.txt", _harness_wheel(folder / "harness", root)
    constraints.write_text(constraints_of((root / "requirements.lock").read_text(encoding="utf-8")), encoding="utf-8")
    install = f"python -m pip install --quiet --no-compile -c {shlex.quote(str(constraints))} -r {{build_dir}}/{PINS}"
    write_configuration(
        folder,
        project_url="https://tvm.apache.org/",
        show_commit_url="#",
        repo=str(folder / "repo"),
        benchmark_dir=str(root / "benchmarks" / "asv_suite"),
        env_dir="env",
        results_dir="results",
        html_dir="html",
        install_command=[f"in-dir={{env_dir}} {install} {shlex.quote(str(wheel))}"],
        uninstall_command=["return-code=any python -m pip uninstall -y adreno-bench apache-tvm apache-tvm-ffi"],
        launch_method="forkserver",
        plugins=[f".{tool.asv_plugin}" for tool in tools() if tool.asv_plugin],
    )


def constraints_of(lock: str) -> str:
    """Return the pins of a lock file without hashes, which pip does not check against constraints, and without TVM."""
    lines = (line.rstrip("\\").rstrip() for line in lock.splitlines() if line[:1].isalnum())
    return "".join(f"{line}\n" for line in lines if not line.startswith("apache-tvm"))


def _harness_wheel(folder: Path, root: Path) -> Path:
    """Return this harness as a wheel, built once for its content.

    It is built from a copy, because a build leaves files in its source tree.
    """
    files = source_files(root, _HARNESS_SOURCES)
    target = folder / digest(root, files)
    if not (wheels := list(target.glob("*.whl"))):
        with scratch_folder() as scratch:
            copy_files(files, root, scratch)
            done = call(
                [*PIP, "wheel", "--quiet", "--no-deps", "-w", str(target), str(scratch)], Path.cwd(), PIP_TIMEOUT_S
            )
        if done.returncode or not (wheels := list(target.glob("*.whl"))):
            raise RigFailure("this harness could not be made into a wheel", evidence=done.stderr)
    return wheels[0]


def source_files(root: Path, names: Sequence[str]) -> list[Path]:
    """Return the files of these names, and those in the folders of these names, but for what Python made of them."""
    files = (file for name in names for file in (root / name, *sorted((root / name).rglob("*"))))
    return [file for file in files if file.is_file() and "__pycache__" not in file.parts]


def copy_files(files: Sequence[Path], root: Path, folder: Path) -> None:
    """Copy files from below `root` to the same places below a folder."""
    for file in files:
        copy = folder / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
