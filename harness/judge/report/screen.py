"""Progress on the terminal: a live list of what is going on, or plain lines where it is not a terminal."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from harness.base.outcome import STATES, CaseState
from harness.base.tables import folded, size
from harness.base.terminal import plain, write
from harness.measure.progress import BUILDING, STILL, Progress, RunStep, Silence, Tally, on_device

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from typing_extensions import Self

    from harness.measure.records.record import Record


ADDED = {RunStep.FIRST_RUN: "the device compiles its kernels"}
"""Reason why a step may take long."""
LOOK_S = 1.0


RED, YELLOW = "31", "33"
_COLOURS = {
    **{outcome.value: RED for outcome, state in STATES.items() if state in (CaseState.WRONG, CaseState.BROKEN)},
    **dict.fromkeys(("wrong", "broken", "missing", "bad"), RED),
    **dict.fromkeys(("slower", "throttled", "device-lost", "infra-error", "unsteady"), YELLOW),
}
"""The colour of a word, as a terminal takes it (ECMA-48)."""
_BEFORE, _BEHIND = r"(?:(?<=  )|(?<=, )|(?<=: )|^)", r"(?=  |, |: | \(owner|\s*$)"
_MARKED = re.compile(rf"(?m){_BEFORE}({'|'.join(_COLOURS)}){_BEHIND}|^missing(?= )")


class Screen(Progress):
    """Draws progress on standard error: a live list on a terminal, else lines, and more of them only in a silence.

    Standard output belongs to the result.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        self.console: Console = Console(
            stderr=True,
            highlight=False,
            force_terminal=sys.stderr.isatty(),
            force_jupyter=False,  # a notebook shows standard error as well
        )
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=Column()),  # which folds between words
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._now: dict[str, str] = {}
        """What is going on, by case or build, in the order in which it began."""
        self._last = ""
        self._builds, self._cases, self._silence = Tally(), Tally(), Silence()
        self._lock = threading.RLock()
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look_on, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._watch.join()
        if self.console.is_terminal:  # elsewhere it never started, and stopping it would print an empty line
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._last = text
            self._tell(text)

    def _tell(self, text: str) -> None:
        with self._lock:
            self._silence.broken()
            self._print(text)
            self._draw()

    def build(self, title: str, state: str, seconds: float) -> None:
        """Show what is being built."""
        if state == "queued":
            self._builds.expect(1)
        elif state.startswith(BUILDING):
            self._show(title, f"building {title}{state.removeprefix(BUILDING)}")
        else:
            self._builds.did()
            self._hide(title)
            if state != "reused":
                self._tell(f"{state} {title} in {seconds:.1f} s{_in_brackets(self._builds)}")

    def begin(self, cases: int) -> None:
        """Expect so many more cases."""
        self._cases.expect(cases)

    def step(self, case_id: str, step: str) -> None:
        """Show what a case is doing; nothing any more where that is empty."""
        if not step:
            self._hide(case_id)
            return
        more = f" ({ADDED[RunStep(step)]})" if step in ADDED else ""
        self._show(case_id, f"{case_id}: {step}{more}")

    def pushing(self, sent_bytes: int, total_bytes: int) -> None:
        """Show how far a push has come."""
        if sent_bytes < total_bytes:
            self._show("push", f"pushing {size(sent_bytes)} of {size(total_bytes)}")
        else:
            self._hide("push")

    def done(self, record: Record) -> None:
        """Print how a case ended."""
        together = on_device(record.case, record.device)
        name = together if together in self._now else record.case
        self._cases.did()
        self._last = ""  # what was said before a case ended is not going on any more
        self._hide(name)
        outcome = f"{name}: {record.outcome.value}" + (f": {record.message}" if record.message else "")
        self._tell(f"{outcome}{_in_brackets(self._cases)}")

    def _show(self, key: str, text: str) -> None:
        with self._lock:
            self._now[key] = text
            self._draw()

    def _hide(self, key: str) -> None:
        with self._lock:
            self._now.pop(key, None)
            self._draw()

    def _print(self, text: str) -> None:
        stamped = f"[{time.monotonic() - self._began:6.1f} s] {plain(text)}"
        self.console.print(folded(stamped, sys.stderr), markup=False, soft_wrap=True)

    @property
    def _going_on(self) -> dict[str, str]:
        """Return the progress and the current steps; the last line if there are none."""
        tallies = {"builds": f"built {self._builds}", "cases": f"ran {self._cases}"}
        begun = {name: text for name, text in tallies.items() if " of " in text}
        return {**begun, **self._now} or ({"last": self._last} if self._last else {})

    def _draw(self) -> None:
        """Make the live list say what is going on."""
        rows = self._going_on
        for gone in [key for key in self._tasks if key not in rows]:
            self._live.remove_task(self._tasks.pop(gone))
        for key, text in rows.items():
            if key in self._tasks:
                self._live.update(self._tasks[key], description=plain(text))
            else:
                self._tasks[key] = self._live.add_task(plain(text))

    def _look_on(self) -> None:
        """Keep the live list up to date, or break a silence where there is none."""
        while not self._ended.wait(LOOK_S):
            with self._lock:
                if self.console.is_terminal:
                    self._draw()
                elif self._silence.too_long and self._going_on:
                    self._print(f"{STILL}{'; '.join(self._going_on.values())}")


def _in_brackets(tally: Tally) -> str:
    return f" ({tally})" if str(tally) else ""


def out(text: str) -> None:
    """Print a result for a person, no wider than the terminal, in colour where it has some."""
    write(folded(text), painted=paint)


def paint(text: str) -> str:
    """Colour the words of outcomes, verdicts and checks where they stand in a cell of their own or before a colon."""
    return _MARKED.sub(lambda word: f"\x1b[{_COLOURS[word[0]]}m{word[0]}\x1b[0m", text)


def out_parts(*texts: str) -> None:
    """Print a result for a person in parts, with a line between them; parts without text are left out."""
    out("\n\n".join(filter(None, texts)))


def out_whole(text: str) -> None:
    """Print a result for a program or a file: JSON, Markdown, source code. No line of it is folded."""
    write(text)


def out_json(value: object) -> None:
    """Print one JSON value for a program, in the shape that docs/reference/records.md states."""
    out_whole(json.dumps(value, indent=1, allow_nan=False))
