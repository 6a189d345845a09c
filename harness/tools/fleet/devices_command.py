"""`adreno-bench devices`: the devices there are to run on, who uses them now, and how each did week by week."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.adb_device import AdbDevice
from device_runner.device import DeviceEntry
from device_runner.failures import Failure, RigFailure
from device_runner.registry import list_devices, open_device
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode
from harness.base.tables import table
from harness.base.terminal import plain
from harness.cli import completion
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordsPlace, TrackerAddress
from harness.cli.record_filter import open_index
from harness.judge.report.screen import out, out_json
from harness.tools.fleet.offer import entry_of
from harness.tools.fleet.remote import offers
from harness.tools.fleet.tracker import address_of

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


def devices(
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Restore what a killed run left changed on a phone: screen, radio, clocks."),
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(help="With --restore or --health: only this device.", autocompletion=completion.devices),
    ] = None,
    health: Annotated[
        bool,
        typer.Option("--health", help="Show losses, recoveries and heat of each phone, week by week."),
    ] = False,
    records: RecordsPlace = str(DEFAULT_RECORDS),
    tracker: TrackerAddress = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show which process uses which device, until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the virtual phone, the OpenCL device of this host, and every phone."""
    if device and not (restore or health):
        raise UsageError("--device goes with --restore or --health", hint="add one of them")
    if health and (restore or watch or tracker):
        raise UsageError("--health goes with none of --restore, --watch and --tracker", hint="run one after the other")
    if watch and (restore or as_json):
        raise UsageError("--watch goes with neither --restore nor --json", hint="leave one of them out")
    if restore and tracker:
        raise UsageError("--restore works on devices of this host only", hint="run it on the host that has the device")
    if health:
        show_health(records, device, as_json)
    elif watch:
        watch_devices(_lister(tracker))
    elif restore:
        _restore(device, as_json)
    else:
        _list(tracker, as_json)


def put_back(name: str, cache: Path, *, timeout_s: float = 0) -> Mapping[str, str]:
    """Restore what a killed run left changed on a device: the result for each knob, empty if nothing was changed.

    Raises `UnknownDevice`, `DeviceBusy` if somebody measures on it, or `DeviceLost` if it cannot be reached.
    """
    with open_device(name, cache, timeout_s=timeout_s, runtime=False) as device:
        return device.keeper.put_back() if isinstance(device, AdbDevice) else {}


def _restore(name: str | None, as_json: bool) -> None:
    cache = cache_root()
    rows, failed = list[tuple[str, str, str]](), False
    for device in [name] if name else [entry.name for entry in list_devices(cache) if entry.state == "ready"]:
        try:
            rows += [(device, *came) for came in put_back(device, cache).items()]
        except Failure as failure:
            if name:
                raise
            rows, failed = [*rows, (device, "", str(failure))], True  # the others are put back anyway
    if as_json:
        out_json([{"device": device, "what": what, "now": now} for device, what, now in rows])
    else:
        out(table(rows, ("device", "what", "now"), prose=("now",)) if rows else "nothing was left changed")
    if failed:
        raise typer.Exit(ExitCode.RIG_FAILURE)


def _lister(tracker: str | None) -> Callable[[], Sequence[DeviceEntry]]:
    """Return what lists the devices of this host, or those at a tracker."""
    if not tracker:
        return partial(list_devices, cache_root())
    address = address_of(tracker)
    return lambda: [entry_of(offer) for offer in offers(address)]


def _list(tracker: str | None, as_json: bool) -> None:
    listed = _lister(tracker)()
    if as_json:
        out_json([asdict(entry) for entry in listed])
        return
    rows = [(entry.name, entry.kind, entry.state, _detail(entry)) for entry in listed]
    out(table(rows, ("device", "kind", "state", "detail"), prose=("detail",)))


def _detail(entry: DeviceEntry) -> str:
    """Return what is known of a device, each thing with its name; what a built-in one is needs none."""
    return ", ".join(value if name == "what" else f"{name} {value}" for name, value in entry.detail.items() if value)


WATCH_EVERY_S = 1.0
WATCH_COLUMNS = ("device", "state", "used by", "case", "step", "for", "held for")

Row = tuple[str, ...]


def watch_devices(
    devices: Callable[[], Sequence[DeviceEntry]],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show every device until Ctrl-C: a table on a terminal, else one line for each change.

    An adb server or a tracker that does not answer is shown as such, and asked again.
    """
    before: Sequence[Row] = ()
    with _live() as live:
        while True:
            now = datetime.now(timezone.utc)
            rows = _rows(devices, now)
            if live:
                live.update(_table(rows), refresh=True)
            else:
                _say_changes(before, rows, now)
            before = rows
            sleep(WATCH_EVERY_S)


def row_of(entry: DeviceEntry, now: datetime) -> Row:
    """Return the row of a device."""
    owner = entry.owner
    if not owner:
        return entry.name, entry.state, entry.detail.get("used by", ""), "", "", "", ""
    used_by = f"{owner.pid} on {owner.host}"
    return entry.name, entry.state, used_by, owner.case, owner.step, _age(owner.step_since, now), _age(owner.since, now)


def _rows(devices: Callable[[], Sequence[DeviceEntry]], now: datetime) -> list[Row]:
    try:
        rows = [row_of(entry, now) for entry in devices()]
    except RigFailure as failure:
        rows = [("-", str(failure), *[""] * (len(WATCH_COLUMNS) - 2))]
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

    return Text(
        table(rows, WATCH_COLUMNS, prose=("state",), spare=("held for", "used by", "for"))
    )  # a name is not markup


def _say_changes(before: Sequence[Row], rows: Sequence[Row], now: datetime) -> None:
    states = {row[0]: row[1:5] for row in before}
    gone = [(name, "gone") for name in states if name not in {row[0] for row in rows}]
    changed = [row[:5] for row in rows if states.get(row[0]) != row[1:5]]
    for row in (*changed, *gone):
        out(f"{now.astimezone():%H:%M:%S}  " + "  ".join(text for text in row if text))


HEALTH_COLUMNS = ("phone", "week of", "records", "lost", "rig failures", "crashes", "recoveries", "throttled")


def show_health(records: str, device: str | None, as_json: bool) -> None:
    """Show what records say of the phones, or of one by its serial or name. Raises UsageError."""
    from harness.tools.fleet.health import health

    with open_index(records) as index:
        weeks = health(index.outcomes(device))
        if not weeks:
            of = f" of {device}" if device and index.devices else ""
            raise UsageError(f"there are no records{of} in {records}", hint="name another file with --records")
    if as_json:
        out_json([asdict(week) for week in weeks])
        return
    rows = [
        (
            *(w.phone, w.week or "?", w.records, w.lost, w.rig_failures, w.crashes, w.recoveries),
            "-" if w.throttled_share is None else f"{w.throttled_share:.1%}",
        )
        for w in weeks
    ]
    out(table(rows, HEALTH_COLUMNS, right=HEALTH_COLUMNS[2:], spare=("rig failures", "crashes")))
