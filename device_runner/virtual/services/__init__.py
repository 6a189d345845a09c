"""What a host can open on the phone, by destination. Source: AOSP packages/modules/adb, SERVICES.TXT."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from device_runner.virtual.services import control, reverse, shell, sockets, sync
from device_runner.virtual.strokes import struck
from device_runner.virtual.transport import Service, Stream

_SERVICES: dict[str, Callable[[Stream, str], Awaitable[None]]] = {
    "shell:": shell.shell,
    "shell,": shell.shell_with_options,
    "exec:": shell.execute,
    "sync:": sync.sync,
    "tcp:": sockets.tcp,
    "localabstract:": sockets.local_abstract,
    "localfilesystem:": sockets.local_filesystem,
    "reverse:": reverse.reverse,
    "reconnect": control.reconnect,
    "root:": control.root,
    "unroot:": control.unroot,
    "remount:": control.refuse_politely,
    "reboot:": control.reboot,
    "tcpip:": control.refuse_politely,
    "usb:": control.refuse_politely,
}
_OPERATIONS = {"shell:": "shell", "shell,": "shell", "exec:": "shell", "sync:": "push", "tcp:": "session"}
"""What can be struck by chance, and as what."""


def find(destination: str) -> Service | None:
    """The service of a destination such as `shell:ls`, or None if the phone has none."""
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
    with struck(stream, operation, argument):
        await service(stream, argument)
