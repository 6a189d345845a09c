"""Where a server that imitates a faulty device differs from a healthy one. These classes are the healthy one."""

from __future__ import annotations

import socket


class SessionBehaviour:
    """What happens in one session beside what its client asks for."""

    kill_after_s: float | None = None
    """How long after its beginning the session's worker is killed; None if it is not."""

    def begin(self) -> None:
        """Called in the worker, before it serves."""

    def before_loading(self, library: str) -> None:
        """Called in the worker, before it loads the library of this file name."""

    def ended(self, worker: int, status: int) -> None:
        """Called in the server, when its worker has ended with this status of `waitpid`, before its log says so."""


class Behaviour:
    """What happens in a server beside its sessions."""

    def why_not_started(self) -> str:
        """What the device's linker says of a program that it cannot start; empty of one that it can."""
        return ""

    def is_taken(self, port: int) -> bool:
        """Whether a port is to be found taken that is not."""
        return False

    def meet(self, connection: socket.socket) -> None:
        """Called before the handshake with a client."""

    def session(self) -> SessionBehaviour:
        """Called when a client was let in: what its session is like."""
        return SessionBehaviour()
