"""A root of its own for the compiler: its packages and the sources to be read, no network, nothing of the user's.

A changed root is needed in any case, because Mesa looks for its library of OpenCL functions under an absolute path. Our
program in it, which hands kernels to the compiler, is compiled once by the C compiler of this machine.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from device_runner.runtimes.c_code import CCode
from harness.base.process import run_to_end
from harness.tools.isa.failures import NoToolchain

NAME = "compile_kernels"
_COMPILE_KERNELS = CCode(
    NAME,
    "the program that compiles kernels",
    "isa_program",
    (Path(__file__).parent / "src",),
    links=("-Wl,--as-needed",),
    libraries=("-lOpenCL",),
    executable=True,
)
SOURCES = "/src"
PROGRAM = "/program"
MOUNT_POINTS = ("dev", "proc", "tmp", "src", "program", "etc/OpenCL")
"""Folders that the packages' root must have where there is no bubblewrap."""
LOADER = "/usr/lib64/ld-linux-x86-64.so.2"
"""Started by name, because the packages bring no link to it where programs expect one."""
PROBE_DEADLINE_S = 30.0
_BARE = """
set -e
root=$1 sources=$2 program=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$sources" "$root/src"
mount --bind "$program" "$root/program"
for folder in src program; do mount -o remount,bind,ro "$root/$folder"; done
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
: > "$root/dev/null"
exec chroot "$root" "$@"
"""
"""Run by `unshare` as the root of its own user namespace, in which nothing outside the root is reachable."""


def program(cache: Path) -> Path:
    """Return the folder that holds it and nothing else that could be run.

    Raises SetupMissing without a compiler or OpenCL's development files, DiskFull, RigFailure.
    """
    return _COMPILE_KERNELS.file(cache).parent


def command(root: Path, sources: Path, program: Path, variables: Mapping[str, str], argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` with the folder `program` at `/program` and `sources` at `/src`.

    Raises NoToolchain if this machine has no sandbox.
    """
    return _KINDS[kind(root, program)](root, sources, program, variables, argv)


@functools.cache
def kind(root: Path, program: Path) -> str:
    """Which sandbox is used, found by trying. Raises NoToolchain if none works, with the reasons."""
    reasons = []
    for name, command in _KINDS.items():
        if shutil.which(name) is None:
            reasons.append(f"{name} is not installed")
            continue
        argv = command(root, program, program, {}, program_line())
        try:
            tried = run_to_end(argv, PROBE_DEADLINE_S)
        except subprocess.TimeoutExpired:
            reasons.append(f"{name} did not answer in {PROBE_DEADLINE_S:.0f} s")
            continue
        if tried.returncode == 0:
            return name
        reasons.append(f"{name}: {tried.stderr.strip() or f'exit {tried.returncode}'}")
    hint = "sudo apt-get install bubblewrap, and allow unprivileged user namespaces"
    raise NoToolchain(f"the compiler cannot be put into a sandbox here: {'; '.join(reasons)}", hint=hint)


def program_line(*preload: str) -> list[str]:
    """Return the beginning of a command that runs our program in the sandbox, with these libraries first."""
    return [LOADER, *(part for library in preload for part in ("--preload", library)), f"{PROGRAM}/{NAME}"]


def _bubblewrap(
    root: Path, sources: Path, program: Path, variables: Mapping[str, str], argv: Sequence[str]
) -> list[str]:
    line = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--clearenv",
    ]
    line += ["--ro-bind", str(root / "usr"), "/usr", "--ro-bind", str(root / "etc/OpenCL"), "/etc/OpenCL"]
    line += ["--ro-bind", str(sources), SOURCES, "--ro-bind", str(program), PROGRAM]
    line += ["--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--chdir", "/"]
    line += [part for name, value in variables.items() for part in ("--setenv", name, value)]
    return [*line, "--", *argv]


def _unshare(root: Path, sources: Path, program: Path, variables: Mapping[str, str], argv: Sequence[str]) -> list[str]:
    line = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork"]
    line += ["--kill-child", "sh", "-c", _BARE, "sh", str(root), str(sources), str(program)]
    settings = [f"{name}={value}" for name, value in variables.items()]
    return ["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *settings, *line, *argv]


_KINDS = {"bwrap": _bubblewrap, "unshare": _unshare}
"""The better one first: bubblewrap also drops all capabilities."""
