"""Requests to the daemon itself."""

from __future__ import annotations

from device_runner.virtual import mishaps
from device_runner.virtual.transport import Stream

REBOOT_S = 1.0
"""How long a phone that is told to reboot is away. It boots as long again."""


async def _say(stream: Stream, text: str) -> None:
    await stream.accept()
    await stream.write(text.encode())


async def reconnect(stream: Stream, _: str) -> None:
    """Drop this host's connection; an adb server comes back by itself."""
    await _say(stream, "done")
    await stream.flush()
    stream.transport.drop()


async def root(stream: Stream, _: str) -> None:
    """Refuse, in the words of a production build."""
    await _say(stream, "adbd cannot run as root in production builds\n")


async def unroot(stream: Stream, _: str) -> None:
    """The daemon does not run as root, so there is nothing to do."""
    await _say(stream, "adbd not running as root\n")


async def reboot(stream: Stream, _: str) -> None:
    """Go away and come back, as a phone that has booted."""
    await stream.accept()
    await stream.flush()
    await mishaps.befall(stream.transport.phone, "reboot", REBOOT_S)


async def refuse_politely(stream: Stream, _: str) -> None:
    """Answer what a virtual phone cannot do."""
    await _say(stream, "not supported by the virtual phone\n")
