"""What happens to operations that chance (`dice`) chooses to fail. The host is told when it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from device_runner.virtual.fault_file import FaultFile
from device_runner.virtual.mishaps import kill_server
from device_runner.virtual.transport import Stream, StreamRefused

TITLE_LIMIT = 200


@contextmanager
def struck(stream: Stream, operation: str, title: str) -> Iterator[None]:
    """Around the work of one operation: lets it fail if chance says so. Raises StreamRefused if it may not begin."""
    phone = stream.transport.phone
    chance = phone.faults.now.chance
    stroke = phone.dice.draw(operation, chance) if chance else None
    if not chance or not stroke:
        yield
        return

    def tell() -> None:
        phone.tell(event="injected", what=stroke.what, into=operation, title=title[:TITLE_LIMIT])

    with _STROKES[stroke.what](_Struck(stream, stroke.when * chance.for_s, chance.for_s, tell)):
        yield


@dataclass(frozen=True)
class _Struck:
    """An operation and when it is struck, from its beginning."""

    stream: Stream
    after_s: float
    for_s: float
    tell: Callable[[], None]

    @property
    def faults(self) -> FaultFile:
        return self.stream.transport.phone.faults

    @contextmanager
    def later(self, act: Callable[[], None]) -> Iterator[None]:
        """Act in the middle of the work, unless it has ended by then."""

        def strike() -> None:
            self.tell()
            act()

        handle = asyncio.get_running_loop().call_later(self.after_s, strike)
        try:
            yield
        finally:
            handle.cancel()


@contextmanager
def _refuse(struck: _Struck) -> Iterator[None]:
    struck.tell()
    raise StreamRefused("by chance")
    yield


@contextmanager
def _freeze(struck: _Struck) -> Iterator[None]:
    struck.tell()
    struck.faults.for_a_while(struck.for_s, frozen=True)
    yield


@contextmanager
def _drop(struck: _Struck) -> Iterator[None]:
    with struck.later(struck.stream.transport.drop):
        yield


@contextmanager
def _crash(struck: _Struck) -> Iterator[None]:
    with struck.later(lambda: kill_server(struck.stream.transport.phone)):
        yield


@contextmanager
def _error(struck: _Struck) -> Iterator[None]:
    struck.tell()
    with struck.faults.during(send_error="by chance"):
        yield


@contextmanager
def _full(struck: _Struck) -> Iterator[None]:
    struck.tell()
    with struck.faults.during(full_after_bytes=0):
        yield


_STROKES: dict[str, Callable[[_Struck], AbstractContextManager[None]]] = {
    "refuse": _refuse,
    "freeze": _freeze,
    "drop": _drop,
    "crash": _crash,
    "error": _error,
    "full": _full,
}
