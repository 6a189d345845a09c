"""`adreno-bench devices --watch`: which process uses which device, as it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from device_runner.failures import RigFailure

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from device_runner.device import DeviceEntry

EVERY_S = 1.0
COLUMNS = ("device", "state", "used by", "case", "step", "for", "held for")

Row = tuple[str, ...]


def watch(
    devices: Callable[[], Sequence[DeviceEntry]],
    *,
    rounds: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show every device until Ctrl-C: a table on a terminal, else one line for each change.

    An adb server or a tracker that does not answer is shown as such, and asked again.
    """
    shown: Sequence[Row] = ()
    with _live() as live:
        while rounds is None or rounds > 0:
            now = datetime.now(timezone.utc)
            rows = _rows(devices, now)
            if live:
                live.update(_table(rows), refresh=True)
            else:
                _say_changes(shown, rows, now)
            shown = rows
            rounds = rounds - 1 if rounds is not None else None
            sleep(EVERY_S)


def row_of(entry: DeviceEntry, now: datetime) -> Row:
    """What is shown of one device."""
    owner = entry.owner
    if not owner:
        return entry.name, entry.state, entry.detail.get("used by", ""), "", "", "", ""
    used_by = f"{owner.pid} on {owner.host}"
    return entry.name, entry.state, used_by, owner.case, owner.step, _age(owner.step_since, now), _age(owner.since, now)


def _rows(devices: Callable[[], Sequence[DeviceEntry]], now: datetime) -> list[Row]:
    from harness.cli.screen import plain

    try:
        rows = [row_of(entry, now) for entry in devices()]
    except RigFailure as failure:
        rows = [("-", str(failure), *[""] * (len(COLUMNS) - 2))]
    return [tuple(plain(text) for text in row) for row in rows]


def _age(since: str, now: datetime) -> str:
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return ""
    minutes, rest = divmod(max(0, seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _live() -> AbstractContextManager[Live | None]:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    return Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext()


def _table(rows: Sequence[Row]) -> Text:
    from rich.text import Text

    from harness.tables import table

    return Text(table(rows, COLUMNS, prose=("state",), spare=("held for", "used by", "for")))  # a name is not markup


def _say_changes(before: Sequence[Row], rows: Sequence[Row], now: datetime) -> None:
    from harness.cli.screen import out

    known = {row[0]: row[1:5] for row in before}
    gone = [(name, "gone") for name in known if name not in {row[0] for row in rows}]
    changed = [row[:5] for row in rows if known.get(row[0]) != row[1:5]]
    for row in (*changed, *gone):
        out(f"{now.astimezone():%H:%M:%S}  " + "  ".join(text for text in row if text))
