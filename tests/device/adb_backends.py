"""The daemons that the conformance tests drive: ours, and Android's own as Debian builds it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bridge
import pytest
from debian_adbd import NotToBeHad, adbd_root

from device_runner.stand_ins.virtual import VirtualPhone, phone, private_adb, sandbox, virtual_phone
from device_runner.stand_ins.virtual.processes import Children

ADB_DEADLINE_S = 60
ADBD_PORT = "5700"


@dataclass(frozen=True)
class Backend:
    """A daemon behind a private adb server."""

    name: str
    serial: str
    adb_server: int | Path
    root: str
    """Writable folder on the device."""
    python: str = sys.executable
    """A Python that runs on the device."""

    def command(self, *arguments: str) -> list[str]:
        where = ["-P", str(self.adb_server)]
        if isinstance(self.adb_server, Path):
            where = ["-L", f"localfilesystem:{self.adb_server}"]
        return [str(private_adb.adb_binary()), *where, "-s", self.serial, *arguments]

    def adb(self, *arguments: str, data: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run the adb binary to its end, with `data` as its standard input."""
        command = self.command(*arguments)
        done = subprocess.run(command, input=data, capture_output=True, timeout=ADB_DEADLINE_S, check=False)
        assert not check or done.returncode == 0, done
        return done

    def shell(self, command: str) -> str:
        """What a command that succeeds prints."""
        return self.adb("shell", command).stdout.decode()


def backend_of(running: VirtualPhone) -> Backend:
    return Backend("ours", running.serial, running.adb_server, running.root)


def gpu_nodes(running: VirtualPhone) -> str:
    """The folder of the GPU's files in `/sys`, as a shell on the phone finds it."""
    return f"{'' if running.sandboxed else running.home}/sys/class/kgsl/kgsl-3d0"


@contextlib.contextmanager
def backend(name: str, home: Path, config: pytest.Config) -> Iterator[Backend]:
    """`ours`, or `debian`, without which the test is skipped."""
    if name == "ours":
        with ours(home) as device:
            yield device
        return
    if reason := sandbox.why_not():
        pytest.skip(f"adbd listens on all addresses and must be fenced in, but there is no sandbox: {reason}")
    try:
        root = adbd_root(config.cache.mkdir("adbd"))
    except NotToBeHad as missing:
        pytest.skip(f"Debian's adbd cannot be had: {missing}")
    with debian(home, root) as device:
        yield device


@contextlib.contextmanager
def ours(home: Path) -> Iterator[Backend]:
    with virtual_phone(home, adb_by_tcp=True) as running:  # for adbutils and the adb of others
        yield backend_of(running)


@contextlib.contextmanager
def debian(home: Path, adbd_root: Path) -> Iterator[Backend]:
    """adbd listens on all addresses, so it gets a network of its own, and a bridge that only we can cross."""
    phone.prepare(home)
    adbd = adbd_root / "usr/lib/android-sdk/platform-tools/adbd"
    libraries = [adbd_root / "usr/lib/x86_64-linux-gnu/android", adbd_root / "usr/lib/x86_64-linux-gnu"]
    # Under `nohup` it would ignore the signal.
    variables = f"ADBD_PORT={ADBD_PORT} LD_LIBRARY_PATH={':'.join(map(str, libraries))}"
    start = f"/usr/bin/env --default-signal=HUP {variables} {adbd}"
    inside = f"{start} & exec {sys.executable} -I {bridge.__file__} /data/local/tmp/bridge {ADBD_PORT}"
    readable = [adbd_root, Path(sys.prefix), Path(sys.base_prefix), Path(bridge.__file__)]
    argv = sandbox.command(home, readable, ["/bin/sh", "-c", inside])
    argv.insert(1, "--unshare-net")
    with Children() as children, (home / "adbd.log").open("wb") as log:
        adb_server = private_adb.PrivateServer(children, home / "adb", log, tcp=True).address
        env = {"PATH": "/system/bin:/usr/bin:/bin", "HOME": "/data/local/tmp"}
        children.start(argv, env=env, stderr=log, stdout=log)
        with bridge.bridge(home / "data/local/tmp/bridge") as port:
            serial = f"127.0.0.1:{port}"
            private_adb.connect(adb_server, serial, 15)
            root = "/data/local/tmp/conformance"
            (home / root[1:]).mkdir(exist_ok=True)
            yield Backend("debian", serial, adb_server, root)
