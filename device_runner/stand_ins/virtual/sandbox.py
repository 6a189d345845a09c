"""The bubblewrap sandbox around the daemon and everything that it starts.

Inside, the phone's folders are `/data`, `/system` and `/sys`, the host's programs are read-only, the user is 2000
(Android's `shell`), and all processes end with the sandbox. The network is the host's: adb comes over the loopback.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from device_runner.stand_ins.virtual import userland
from device_runner.stand_ins.virtual.phone import BOOT_ID, PROGRAMS

SHELL_UID = 2000
PROBE_DEADLINE_S = 10.0

_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("OpenCL", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "hosts", "nsswitch.conf")
KERNEL_BOOT_ID = "/proc/sys/kernel/random/boot_id"
CPU_CLOCKS = "/sys/devices/system/cpu/cpufreq"
KGSL = "sys/class/kgsl/kgsl-3d0"

_GPU_NODES = ("dri", "kfd", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


def why_not() -> str:
    """Return why no sandbox can be had here, found by trying; empty if it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    try:
        tried = subprocess.run(
            _bwrap([], ["--ro-bind", "/sys", "/sys"], ["/usr/bin/true"]),
            capture_output=True,
            timeout=PROBE_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"bubblewrap did not answer in {PROBE_DEADLINE_S:.0f} s"
    return "" if tried.returncode == 0 else tried.stderr.decode(errors="replace").strip() or f"exit {tried.returncode}"


def command(home: Path, readable: Iterable[Path], argv: Sequence[str], *, rooted: bool = False) -> list[str]:
    """Command line that runs `argv` on the phone in `home`, with `readable` host folders in their places.

    On a `rooted` phone the GPU's nodes can be written.
    """
    folders = ["--bind", str(home / "data"), "/data"]
    for name in ("system", "sys"):
        folders += ["--ro-bind", str(home / name), f"/{name}"]
    if rooted and (home / KGSL).is_dir():
        folders += ["--bind", str(home / KGSL), f"/{KGSL}"]
    for name in ("passwd", "group"):
        folders += ["--ro-bind", str(home / "system/etc" / name), f"/etc/{name}"]
    folders += ["--ro-bind", str(home / BOOT_ID), KERNEL_BOOT_ID]
    if userland.is_stock(home / PROGRAMS):
        # Android's /bin is /system/bin. Here it stays the host's, where Python may be, but for the shell of scripts.
        folders += ["--ro-bind", str(home / PROGRAMS / "sh"), "/bin/sh"]
    # OpenCL drivers size their thread pools by the real CPU.
    folders += ["--ro-bind", "/sys/devices/system", "/sys/devices/system"]
    if Path(CPU_CLOCKS).is_dir():  # but these are not the phone's
        folders += ["--tmpfs", CPU_CLOCKS]
    return _bwrap(readable, folders, argv)


def _bwrap(readable: Iterable[Path], folders: Sequence[str], argv: Sequence[str]) -> list[str]:
    bwrap = shutil.which("bwrap") or "bwrap"  # it is started with a phone's PATH
    line = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    line += ["--uid", str(SHELL_UID), "--gid", str(SHELL_UID), "--hostname", "virtual"]
    line += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for name in _TOP_LEVEL:
        line += _like_host(Path("/") / name)
    for name in _ETC:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in _GPU_NODES:
        line += ["--dev-bind-try", f"/dev/{name}", f"/dev/{name}"]
    for path in _outermost(readable):
        line += ["--ro-bind", str(path), str(path)]
    line += [*folders, "--remount-ro", "/", "--chdir", "/"]
    return [*line, "--", *argv]


def _like_host(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind-try", str(path), str(path)]


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Drop folders inside another one, or inside /usr."""
    folders: list[Path] = [Path("/usr")]
    for path in sorted(set(paths), key=lambda p: len(p.parts)):
        if not any(path.is_relative_to(outer) for outer in folders):
            folders.append(path)
    return folders[1:]
