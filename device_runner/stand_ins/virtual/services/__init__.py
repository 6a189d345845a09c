"""What a host can open on the phone, by destination, with the requests to the daemon itself.

Source: AOSP packages/modules/adb, SERVICES.TXT.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from device_runner.stand_ins.virtual import mishaps
from device_runner.stand_ins.virtual.mishaps import strike
from device_runner.stand_ins.virtual.services import shell, sockets, sync
from device_runner.stand_ins.virtual.transport import Service, Stream

REBOOT_S = 1.0
"""How long a phone that is told to reboot is away. It boots as long again."""


async def _say(stream: Stream, _argument: str, text: str) -> None:
    await stream.accept()
    await stream.write(text.encode())


async def reconnect(stream: Stream, _: str) -> None:
    """Drop this host's connection; an adb server comes back by itself."""
    await _say(stream, "", "done")
    await stream.flush()
    stream.transport.drop()


async def reboot(stream: Stream, _: str) -> None:
    """Go away and come back, as a phone that has booted."""
    await stream.accept()
    await stream.flush()
    await mishaps.befall(stream.transport.phone, "reboot", REBOOT_S)


_UNSUPPORTED = partial(_say, text="not supported by the virtual phone\n")
_SERVICES: dict[str, Callable[[Stream, str], Awaitable[None]]] = {
    "shell:": shell.shell,
    "shell,": shell.shell_with_options,
    "exec:": shell.execute,
    "sync:": sync.sync,
    "tcp:": sockets.tcp,
    "localabstract:": sockets.local_abstract,
    "localfilesystem:": sockets.local_filesystem,
    "reverse:": sockets.reverse,
    "reconnect": reconnect,
    "root:": partial(_say, text="adbd cannot run as root in production builds\n"),
    "unroot:": partial(_say, text="adbd not running as root\n"),
    "remount:": _UNSUPPORTED,
    "reboot:": reboot,
    "tcpip:": _UNSUPPORTED,
    "usb:": _UNSUPPORTED,
}
_OPERATIONS = {"shell:": "shell", "shell,": "shell", "exec:": "shell", "sync:": "push", "tcp:": "session"}
"""What can be struck by chance, and as what."""


def find(destination: str) -> Service | None:
    """Return the service of a destination such as `shell:ls`, or None if the phone has none."""
    for prefix, service in _SERVICES.items():
        if destination.startswith(prefix):
            return partial(_call, service, _OPERATIONS.get(prefix), destination[len(prefix) :])
    return None


async def _call(
    service: Callable[[Stream, str], Awaitable[None]], operation: str | None, argument: str, stream: Stream
) -> None:
    if not operation:
        await service(stream, argument)
        return
    with strike(stream, operation, argument):
        await service(stream, argument)
