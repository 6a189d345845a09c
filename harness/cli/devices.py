"""`adreno-bench devices`: the devices there are to run on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordsFile, TrackerAddress
from harness.failures import UsageError
from harness.run.outcome import ExitCode

if TYPE_CHECKING:
    from device_runner.device import DeviceEntry


def devices(
    restore: Annotated[
        bool, typer.Option("--restore", help="Put back what a killed run left changed: screen, radio, clocks.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option("--device", help="With --restore, --health: only this one.", autocompletion=completion.devices),
    ] = None,
    health: Annotated[
        bool,
        typer.Option("--health", help="How each phone did, week by week, by its records: losses, recoveries, heat."),
    ] = False,
    records: RecordsFile = DEFAULT_RECORDS,
    tracker: TrackerAddress = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show which process uses which device, as it changes, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the virtual device, this host's OpenCL device, and every phone that adb knows; or those at a tracker."""
    if device and not (restore or health):
        raise UsageError("--device says which device --restore or --health is for", hint="add one of them")
    if health and (restore or watch or tracker):
        raise UsageError("--health reads records, and goes with no other question", hint="ask one after the other")
    if watch and (restore or as_json):
        raise UsageError("--watch goes with neither --restore nor --json", hint="leave one of them out")
    if restore and tracker:
        raise UsageError("--restore works on devices of this host only", hint="run it on the host that has the device")
    if health:
        from harness.cli.health import show_health

        show_health(records, device, as_json)
    elif watch:
        _watch(tracker)
    elif restore:
        _restore(device, as_json)
    else:
        _list(tracker, as_json)


def _restore(name: str | None, as_json: bool) -> None:
    from device_runner.failures import Failure
    from device_runner.registry import list_devices, put_back
    from device_runner.store import cache_root
    from harness.cli.screen import out, out_json
    from harness.tables import table

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


def _watch(tracker: str | None) -> None:
    from harness.cli.watch import watch

    watch(_lister(tracker))


def _lister(tracker: str | None) -> Callable[[], Sequence[DeviceEntry]]:
    """What lists the devices of this host, or those at a tracker."""
    from device_runner.fleet.offer import entry_of
    from device_runner.fleet.remote import offers
    from device_runner.registry import list_devices
    from device_runner.rpc_server.tracker import address_of
    from device_runner.store import cache_root

    if not tracker:
        return partial(list_devices, cache_root())
    address = address_of(tracker)
    return lambda: [entry_of(offer) for offer in offers(address)]


def _list(tracker: str | None, as_json: bool) -> None:
    import dataclasses

    from harness.cli.screen import out, out_json
    from harness.tables import table

    found = _lister(tracker)()
    if as_json:
        out_json([dataclasses.asdict(entry) for entry in found])
        return
    rows = [(e.name, e.kind, e.state, ", ".join(f"{k} {v}" for k, v in e.detail.items() if v)) for e in found]
    out(table(rows, ("device", "kind", "state", "detail"), prose=("detail",)))
