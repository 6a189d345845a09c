"""The phone's shell and tools: mksh and toybox, which Android has as well, under the names that Android gives them.

Sources: AOSP external/mksh and external/toybox (the links in Android.bp); Debian packages both.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SHELL, TOOLBOX = "mksh", "toybox"
HOST_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Path of this host's own programs, also in the sandbox."""
LIST_DEADLINE_S = 10.0
FORKING_RELEASE = "11"
"""The Android release whose `setsid` always forks (toybox 9cacde05 mended it)."""

_APPLETS = """
    acpi base64 basename blockdev cal cat chattr chcon chgrp chmod chown chroot chrt cksum clear cmp comm cp cpio cut
    date dd devmem df diff dirname dmesg dos2unix du echo egrep env expand expr fallocate false fgrep file find flock
    fmt free fsync getconf getenforce grep groups gunzip gzip head hostname hwclock i2cdetect i2cdump i2cget i2cset
    iconv id ifconfig inotifyd insmod install ionice iorenice kill killall ln load_policy log logname losetup ls lsattr
    lsmod lsof lspci lsusb md5sum microcom mkdir mkfifo mknod mkswap mktemp modinfo more mount mountpoint mv nc netcat
    netstat nice nl nohup nproc nsenter od paste patch pgrep pidof pkill pmap printenv printf ps pwd readelf readlink
    realpath renice restorecon rm rmdir rmmod runcon sed sendevent seq setenforce setsid sha1sum sha224sum sha256sum
    sha384sum sha512sum sleep sort split stat strings stty swapoff swapon sync sysctl tac tail tar taskset tee test
    time timeout top touch tr true truncate tty ulimit umount uname uniq unix2dos unlink unshare uptime usleep uudecode
    uuencode uuidgen vmstat watch wc which whoami xargs xxd yes zcat
"""
"""What Android 11 links to toybox. A toybox of another build lacks some of it, and has what no phone has."""
_FORKING_SETSID = """#!/bin/sh
# setsid, as in Android 11: makes itself a group's leader first, so it has to fork, and its parent ends with 0 at once.
exec 3<&0
"${0%/*}/toybox" setsid "$@" <&3 3<&- &
exit 0
"""


def why_not() -> str:
    """Return why this host's own shell and tools stand in for a phone's; empty if they need not."""
    missing = [name for name in (SHELL, TOOLBOX) if shutil.which(name) is None]
    return f"no {' and no '.join(missing)}" if missing else ""


def install(folder: Path, release: str) -> None:
    """Put a shell and tools into the phone's `/system/bin`, as this Android release has them.

    Where there are none to be had it holds a link to this host's shell. What the folder has already stays.
    """
    shell, toolbox = shutil.which(SHELL), shutil.which(TOOLBOX)
    if not shell or not toolbox:
        (folder / "sh").symlink_to("/bin/sh")
        return
    # Copies, because links would lead out of the sandbox where they are not below /usr.
    shutil.copy(shell, folder / "sh")
    shutil.copy(toolbox, folder / "toybox")
    if release == FORKING_RELEASE:
        (folder / "setsid").write_text(_FORKING_SETSID)
        (folder / "setsid").chmod(0o755)
    for name in sorted(_applets_of(toolbox).intersection(_APPLETS.split())):
        if not (folder / name).exists():
            (folder / name).symlink_to("toybox")


def is_stock(folder: Path) -> bool:
    """Return whether this `/system/bin` has a phone's shell and tools."""
    return (folder / "toybox").exists()


def _applets_of(toolbox: str) -> set[str]:
    answer = subprocess.run([toolbox], capture_output=True, text=True, timeout=LIST_DEADLINE_S, check=False)
    return set(answer.stdout.split())
