"""Progress on the terminal: a live list of what is going on, or plain lines where it is not a terminal."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from harness.cli.table import size
from harness.run.progress import on_device
from harness.run.record import Record
from harness.tables import folded

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from typing_extensions import Self


class Screen:
    """Draws progress on standard error. Standard output belongs to the result."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.console: Console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self._live = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=self.console, transient=True
        )
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:  # elsewhere it never started, and stopping it would print an empty line
            self._live.stop()

    def say(self, text: str) -> None:
        """One line that stays."""
        self.console.print(f"[{time.monotonic() - self._began:6.1f} s] {plain(text)}", markup=False)

    def build(self, title: str, state: str, seconds: float) -> None:
        """Show what is being built."""
        if state == "building":
            self._show(title, f"building {title}")
            return
        self._hide(title)
        if state != "reused":
            self.say(f"{state} {title} in {seconds:.1f} s")

    def step(self, case_id: str, step: str) -> None:
        """Show what a case is doing."""
        self._show(case_id, f"{case_id}: {step}")

    def pushing(self, sent_bytes: int, total_bytes: int) -> None:
        """Show how far a push has come."""
        if sent_bytes < total_bytes:
            self._show("push", f"pushing {size(sent_bytes)} of {size(total_bytes)}")
        else:
            self._hide("push")

    def done(self, record: Record) -> None:
        """Say how a case ended."""
        together = on_device(record.case, record.device)
        name = together if together in self._tasks else record.case
        self._hide(name)
        self.say(f"{name}: {record.outcome.value}" + (f": {record.message}" if record.message else ""))

    def _show(self, key: str, text: str) -> None:
        with self._lock:
            if key in self._tasks:
                self._live.update(self._tasks[key], description=text)
            else:
                self._tasks[key] = self._live.add_task(text)

    def _hide(self, key: str) -> None:
        with self._lock:
            if key in self._tasks:
                self._live.remove_task(self._tasks.pop(key))


def out(text: str) -> None:
    """Print a result for a person, no wider than the terminal."""
    out_whole(folded(text))


def out_whole(text: str) -> None:
    """Print a result for a program or a file: JSON, Markdown, source code. No line of it is folded."""
    sys.stdout.write(plain(text) + "\n")
    sys.stdout.flush()


def out_json(value: object) -> None:
    """Print a result for a program: one JSON value in the shape that docs/output.md tells, and nothing else."""
    import json

    out_whole(json.dumps(value, indent=1, allow_nan=False))


def plain(text: str) -> str:
    """Text without what a terminal would obey: devices, models and records from others have a say in what we print."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
