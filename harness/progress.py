"""What a run tells whoever watches it. The command line draws it; a test may collect it; nobody has to listen."""

from __future__ import annotations

from typing import Protocol

from harness.record import Record


class Progress(Protocol):
    """Told what happens, as it happens. Called from several threads while building."""

    def build(self, title: str, state: str, seconds: float) -> None:
        """A build is `building`, or has been `built`, `reused` or `failed` after `seconds`."""

    def step(self, case_id: str, step: str) -> None:
        """A case has come to a step: `loading`, `first run`, `sampling`."""

    def done(self, record: Record) -> None:
        """A case has its outcome."""


class Silent:
    """Listens to nothing."""

    def build(self, title: str, state: str, seconds: float) -> None:
        """Ignore it."""

    def step(self, case_id: str, step: str) -> None:
        """Ignore it."""

    def done(self, record: Record) -> None:
        """Ignore it."""
