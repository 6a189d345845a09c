"""A device behind an adb server as a `Transport`: adb, and a folder of ours on the device that files are brought to.

A file is brought under its hash: compare on the device, send to a temporary name, verify there, rename.

The comparison costs one round trip. It hashes a file once in each boot of the device and leaves a note beside it that
names the boot, because a phone that loses power can keep a file's size and lose its content; while the note holds, the
size is compared. A file that has just arrived is verified by its size alone, as there is no note yet: a second `push`
hashes it. That is how `session` makes sure of a library before it loads it.
"""

from __future__ import annotations

import re
import socket
import struct
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname

from device_runner.deadline import Deadline, receive
from device_runner.device import PushResult
from device_runner.failures import DeviceFailure, DeviceFull, DeviceLost, Failure, RigFailure
from device_runner.transport.adb import Adb
from device_runner.transport.base import BOOT_ID, free_bytes, megabytes
from device_runner.transport.quoting import quoted

Progress = Callable[[int, int], None]
"""Called with the bytes sent so far and in all."""

CHUNK_BYTES = 65_536
"""The largest DATA packet of the sync protocol (AOSP SYNC.TXT)."""

MODE = 0o100755

PRESENT = "present"

CHECK_SCRIPT = f"""
folder=${{1%/*}}
[ -d "$folder" ] || mkdir -p "$folder" || exit
rm -f "$folder"/*.tmp.* || exit
[ -f "$1" ] && [ "$(stat -c %s "$1")" = "$2" ] || exit 0
{{ read -r boot <{BOOT_ID}; read -r seen <"$1.verified"; }} 2>/dev/null
if [ -z "$boot" ] || [ "$seen" != "$boot" ]; then
  sum=$(sha256sum <"$1") && [ "${{sum%% *}}" = "$3" ] || exit 0
  echo "$boot" >"$1.verified"
fi
echo {PRESENT}
"""
"""Arguments: destination, size, sha256. Temporary files are stale: a device has one user at a time."""

COMMIT_SCRIPT = """
size=$(stat -c %s "$1") || exit
[ "$size" = "$3" ] || { echo "$size of $3 bytes arrived" >&2; exit 1; }
rm -f "$2.verified" && mv "$1" "$2"
"""
"""Arguments: temporary name, destination, size."""


def push(
    adb: AdbTransport, file: Path, sha256: str, destination: str, *, timeout_s: float, progress: Progress | None = None
) -> PushResult:
    """Make `destination` on the device a file with this hash.

    Raises `DeviceFull`, or `DeviceLost` if the device goes away or does not keep what it was given.
    """
    deadline = Deadline(timeout_s)
    check = ["sh", "-c", CHECK_SCRIPT, "compare", destination, str(file.stat().st_size), sha256]
    answer = adb.shell(check, timeout_s=deadline.remaining_s)
    if answer.code:
        raise _refusal(adb, answer.stderr, destination)
    if answer.stdout.strip() == PRESENT:
        return PushResult(destination, 0)
    temporary = f"{destination}.tmp.{uuid.uuid4().hex[:8]}"
    try:
        sent_bytes = _send(adb, file, temporary, deadline, progress)
        commit = ["sh", "-c", COMMIT_SCRIPT, "verify", temporary, destination, str(sent_bytes)]
        answer = adb.shell(commit, timeout_s=deadline.remaining_s)
        if answer.code:
            raise _refusal(adb, answer.stderr, destination)
    except BaseException:
        with suppress(DeviceFailure, RigFailure):  # the failure under way is the one to report
            adb.shell(["rm", "-f", temporary], timeout_s=1)
        raise
    return PushResult(destination, sent_bytes)


def _send(adb: AdbTransport, file: Path, path: str, deadline: Deadline, progress: Progress | None) -> int:
    with adb.blame(f"push {file.name}", deadline), adb.open("sync:", deadline) as sock:
        try:
            sent_bytes = _stream(sock, file, path, deadline, progress)
        except ConnectionError as broken:
            answer = _answer(sock, deadline, default=broken)
        else:
            answer = _answer(sock, deadline)
    if answer is not None:
        raise _refusal(adb, answer, path)
    return sent_bytes


def _stream(sock: socket.socket, file: Path, path: str, deadline: Deadline, progress: Progress | None) -> int:
    target = f"{path},{MODE}".encode()
    sock.sendall(b"SEND" + struct.pack("<I", len(target)) + target)
    total = file.stat().st_size
    sent = 0
    packet = bytearray(8 + CHUNK_BYTES)
    view = memoryview(packet)
    with file.open("rb", buffering=0) as source:
        while size := source.readinto(view[8:]):
            struct.pack_into("<4sI", packet, 0, b"DATA", size)
            deadline.bound(sock)
            sock.sendall(view[: 8 + size])
            sent += size
            if progress:
                progress(sent, total)
    sock.sendall(b"DONE" + struct.pack("<I", int(file.stat().st_mtime)))
    return sent


def _answer(sock: socket.socket, deadline: Deadline, default: OSError | None = None) -> str | None:
    """Read the answer: None after OKAY, else the device's reason. Raises `default` if it gave none."""
    try:
        status, size = struct.unpack("<4sI", receive(sock, 8, deadline))
        text = receive(sock, min(size, CHUNK_BYTES), deadline).decode(errors="replace") if status == b"FAIL" else ""
    except OSError:
        if default:
            raise default from None
        raise
    return None if status == b"OKAY" else text or f"the device answered {status!r}"


_FORBIDDEN = ("not permitted", "Permission denied")


def _refusal(adb: AdbTransport, reason: str, path: str) -> Failure:
    reason = reason.strip() or "it gave no reason"
    if any(words in reason for words in _FORBIDDEN):
        look = quoted("adb", "-s", adb.serial, "shell", quoted("ls", "-ld", dirname(path)))
        message = f"device {adb.serial} refuses to store {path}: {reason}"
        return RigFailure(message, hint=f"`{look}` shows who may write there")
    if "No space left" in reason or "Read-only file system" in reason:
        remove = quoted("adb", "-s", adb.serial, "shell", quoted("rm", "-r", dirname(path)))
        hint = f"free some space; `{remove}` removes what was pushed before"
        free = free_bytes(adb, dirname(path))
        left = "" if free is None else f" ({megabytes(free)})"
        return DeviceFull(f"device {adb.serial} cannot store {path}: {reason}{left}", hint=hint)
    return DeviceLost(f"device {adb.serial} did not take {path}: {reason}")


@dataclass(frozen=True)
class AdbTransport(Adb):
    """Reaches a device through adb; our files on it lie under `root`."""

    root: str
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """The serial."""
        return self.serial

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        """Push it to a name made of the hash: dlopen does not load a library again from a path that it has loaded.

        Its endings stay, at most two of letters: they tell what it is.
        """
        ending = re.search(r"(\.[a-z]+){0,2}$", file.name)
        destination = f"{self.root}/files/{sha256}{ending[0] if ending else ''}"
        return push(self, file, sha256, destination, timeout_s=timeout_s, progress=self.progress)
