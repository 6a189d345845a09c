"""Mesa's compiler for Adreno GPUs on this machine: found, or set up in the cache."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from device_runner.store import Store, key_of
from harness.base.process import run_to_end
from harness.tools.isa import apt, pinned, sandbox
from harness.tools.isa.failures import NoToolchain
from harness.tools.isa.sandbox import program
from harness.tools.shared.finding import Condition, DoctorFinding
from harness.tools.shared.full_disk import writing

KIND = "isa_toolchains"
VERSIONS = "versions.json"
SETUP_DEADLINE_S = 1_800.0
QUERY_DEADLINE_S = 30.0
SETUP_HINT = "`adreno-bench isa setup` downloads it: 90 MB, into the cache, without root rights"


@dataclass(frozen=True)
class MesaToolchain:
    """The compiler, ready to be run."""

    root: Path
    """Root of a file system that holds its packages."""
    program: Path
    """Folder of our program that hands kernels to it."""
    mesa: str
    llvm: str

    @property
    def identity(self) -> str:
        """What numbers must have in common to be compared."""
        return f"Mesa {self.mesa}, LLVM {self.llvm}"

    @property
    def sandbox(self) -> str:
        """Which sandbox it is run in. Raises NoToolchain."""
        return sandbox.kind(self.root, self.program)


def find(cache: Path) -> MesaToolchain | None:
    """Find the compiler: the pinned packages of this system, else those in the cache. None without either."""
    if _system_has_it():
        return _toolchain(Path("/"), cache)
    folder = Store(cache, KIND, sums=False).find(_key())
    return _toolchain(folder / "root", cache) if folder else None


def need(cache: Path) -> MesaToolchain:
    """Return the compiler. Raises NoToolchain if it was not set up, or if no sandbox can be had for it."""
    toolchain = find(cache)
    if toolchain is None:
        raise NoToolchain("the open compiler for Adreno is not on this machine", hint=SETUP_HINT)
    sandbox.kind(toolchain.root, toolchain.program)
    return toolchain


def set_up(cache: Path, address: str = "", say: Callable[[str], None] = lambda _: None) -> MesaToolchain:
    """Download and unpack the pinned packages, unless they are here. `address` is a mirror, else the user's own.

    Raises NoToolchain, DiskFull.
    """
    if toolchain := find(cache):
        return toolchain
    if platform.machine() != "x86_64":
        raise NoToolchain(
            f"the pinned packages are for x86-64, and this is {platform.machine()}", hint="use another host"
        )

    def make(scratch: Path) -> None:
        _require_room(scratch)
        versions = apt.unpack(pinned.PACKAGES, pinned.SUITES, pinned.KEYRING, address or apt.mirror(), scratch, say)
        for folder in sandbox.MOUNT_POINTS:
            (scratch / "root" / folder).mkdir(parents=True, exist_ok=True)
        (scratch / VERSIONS).write_text(json.dumps(versions, indent=1), encoding="utf-8")
        (scratch / "title").write_text(f"Mesa {pinned.MESA} for Adreno\n", encoding="utf-8")

    with writing(cache):
        Store(cache, KIND, sums=False).obtain(_key(), make, SETUP_DEADLINE_S)
    return need(cache)


def _toolchain(root: Path, cache: Path) -> MesaToolchain:
    return MesaToolchain(root, program(cache), pinned.MESA, pinned.LLVM)


def _key() -> str:
    return key_of({"packages": pinned.PACKAGES, "suites": pinned.SUITES})


def _require_room(folder: Path) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < pinned.ROOM_BYTES:
        raise NoToolchain(
            f"{free_bytes / 1e6:.0f} MB are free in {folder.parent}, and the compiler takes "
            f"{pinned.ROOM_BYTES / 1e6:.0f} MB",
            hint="`adreno-bench cache --prune`, or set ADRENO_BENCH_CACHE to a folder on another disk",
        )


def _system_has_it() -> bool:
    """Return whether Debian's package manager says that this system has the pinned packages, all of them."""
    if shutil.which("dpkg-query") is None or not Path(pinned.SHIM).exists():
        return False
    asked = ["dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${db:Status-Abbrev}\n", *pinned.PACKAGES]
    try:
        answer = run_to_end(asked, QUERY_DEADLINE_S).stdout
    except subprocess.TimeoutExpired:
        return False
    installed = {tuple(line.split("\t")[:2]) for line in answer.splitlines() if line.split("\t")[-1].startswith("ii")}
    return installed >= set(pinned.PACKAGES.items())


def check(cache: Path) -> Iterator[DoctorFinding]:
    """Yield whether Mesa's compiler is set up, for `adreno-bench doctor`."""
    try:
        toolchain = need(cache)
    except NoToolchain as failure:
        yield DoctorFinding("open compiler", Condition.NOTE, failure.message, failure.hint)
    else:
        state = f"{toolchain.identity}, in a sandbox by {toolchain.sandbox}, for `adreno-bench isa`"
        yield DoctorFinding("open compiler", Condition.OK, state)
