"""Runtimes for phones that were checked and kept on this host.

<cache>/phone-runtime/<digest>/files/…         what is pushed
<cache>/phone-runtime/<digest>/runtime.json    what `examine` found out about it
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from device_runner import installed_tvm
from device_runner.failures import Failure, RigFailure, SetupMissing
from device_runner.store import Store, sha256_of

PROGRAM = "tvm_rpc"
FILES = "files"
FACTS = "runtime.json"
ADD_TIMEOUT_S = 60.0


class UnknownRuntime(Failure):
    """No runtime is kept under this digest."""

    outcome = "usage"


@dataclass(frozen=True)
class RuntimeFolder:
    """A folder that may be used."""

    abi: str
    files: tuple[Path, ...]
    """The program, and the libraries that it needs or that TVM looks for."""
    preload: tuple[str, ...]
    """Libraries that hold a part of the runtime and that nothing in the program's needs leads to."""
    notes: tuple[str, ...]
    """What a person should know and what is no reason to refuse."""


@dataclass(frozen=True)
class PhoneRuntime:
    """One runtime that is kept."""

    digest: str
    abi: str
    tvm: str
    """The release of TVM on this host whose interface it was compared with."""
    preload: tuple[str, ...]
    """Libraries that the server must be started with, because nothing in its needs leads to them."""
    added_at: float
    """Seconds since the epoch."""
    folder: Path
    """Folder of its files."""

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


class RuntimeStore:
    """The runtimes under a cache folder."""

    def __init__(self, cache: Path) -> None:
        self.folder = cache / "phone-runtime"

    def add(self, runtime: RuntimeFolder) -> PhoneRuntime:
        """Keep a runtime; one that already exists is kept once. Raises `RigFailure` if the disk refuses."""
        digest = digest_of(runtime.files)
        tvm = installed_tvm.stated_version("tvm")
        facts = {"abi": runtime.abi, "tvm": tvm, "preload": runtime.preload, "added_at": time.time()}
        store = Store(self.folder.parent, self.folder.name, sums=False)
        with store.making(digest, ADD_TIMEOUT_S) as scratch:
            (scratch / FILES).mkdir()
            for file in runtime.files:
                shutil.copyfile(file, scratch / FILES / file.name)
            (scratch / FILES / PROGRAM).chmod(0o755)  # one for this host is executed where it lies
            (scratch / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")
            shutil.rmtree(self.folder / digest, ignore_errors=True)
        return self._read(digest)

    def entries(self) -> list[PhoneRuntime]:
        """Return every runtime, latest first."""
        names = [path.parent.name for path in self.folder.glob(f"[!.]*/{FACTS}")]
        return sorted(map(self._read, names), key=lambda runtime: -runtime.added_at)

    def remove(self, prefix: str) -> PhoneRuntime:
        """Forget the runtime whose digest begins so. Raises `UnknownRuntime` unless there is exactly one."""
        matches = [runtime for runtime in self.entries() if prefix and runtime.digest.startswith(prefix)]
        if len(matches) != 1:
            message = f"{'no' if not matches else len(matches)} runtimes begin with {prefix!r}"
            raise UnknownRuntime(message, hint="`adreno-bench runtime list` shows them")
        shutil.rmtree(self.folder / matches[0].digest)
        return matches[0]

    def find_for(self, abi: str) -> PhoneRuntime | None:
        """Return the latest one for an ABI that was compared with the TVM of this host, if there is any."""
        tvm = installed_tvm.stated_version("tvm")
        return next((runtime for runtime in self.entries() if (runtime.abi, runtime.tvm) == (abi, tvm)), None)

    def runtime_for(self, abi: str) -> PhoneRuntime:
        """Return what `find_for` finds. Raises `SetupMissing` if there is none, RigFailure if it is damaged."""
        if runtime := self.find_for(abi):
            if digest_of(runtime.folder.iterdir()) != runtime.digest:
                hint = f"remove {runtime.folder.parent} and add the runtime again"
                raise RigFailure(f"the runtime {runtime.digest} is not what was kept in {runtime.folder}", hint=hint)
            return runtime
        tvm = installed_tvm.stated_version("tvm")
        versions = {runtime.tvm for runtime in self.entries() if runtime.abi == abi}
        others = f", only for TVM {', '.join(sorted(versions))}" if versions else ""
        raise SetupMissing(
            f"there is no TVM {tvm} runtime for phones with ABI {abi or 'unknown'} yet{others}",
            hint="build one (docs/tutorial/first-phone.md) and give it to `adreno-bench runtime add FOLDER`",
        )

    def _read(self, digest: str) -> PhoneRuntime:
        folder = self.folder / digest
        try:
            facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
            preload = tuple(map(str, facts["preload"]))
            return PhoneRuntime(digest, facts["abi"], facts["tvm"], preload, facts["added_at"], folder / FILES)
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = f"remove {folder} and add the runtime again"
            raise RigFailure(f"the runtime {digest} is damaged: {type(error).__name__}", hint=hint) from error


def digest_of(files: Iterable[Path]) -> str:
    """Hash of names and contents."""
    hashes = sorted((file.name, sha256_of(file)) for file in files)
    return hashlib.sha256(repr(hashes).encode()).hexdigest()[:16]
