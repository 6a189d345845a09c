"""`adreno-bench cache`: list and remove entries of the cache."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.registry import open_device
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.tables import counted, size, table
from harness.cli import completion
from harness.cli.options import AsJson
from harness.judge.report.screen import out, out_json

if TYPE_CHECKING:
    from harness.tools.cache.entries import CacheEntry

DEFAULT_UNUSED_DAYS = 14.0


def cache(
    prune: Annotated[bool, typer.Option("--prune", help="Remove entries instead of showing them.")] = False,
    unused_days: Annotated[
        float | None,
        typer.Option(metavar="DAYS", min=0, help="With --prune: only entries not used for this long (default 14)."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With --prune: every entry, including unknown files.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(
            help="With --prune: also files pushed to this device that are unused for as long.",
            autocompletion=completion.devices,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what adreno-bench keeps in its cache, or remove it.

    Everything listed can be made again, except runtimes for phones, which stay. Entries in use stay, too.
    ADRENO_BENCH_CACHE chooses the folder.
    """
    if (everything or unused_days is not None or device) and not prune:
        raise UsageError("--all, --unused-days and --device go with --prune", hint="add --prune")
    if prune:
        days = 0.0 if everything else DEFAULT_UNUSED_DAYS if unused_days is None else unused_days
        _prune(cache_root(), 86_400 * days, device, everything=everything, as_json=as_json)
    else:
        _list(cache_root(), as_json)


def _prune(root: Path, unused_for_s: float, device: str | None, *, everything: bool, as_json: bool) -> None:
    from harness.tools.cache.entries import prune

    files = 0
    if device:  # first: opening a device may make what the cache is pruned of
        with open_device(device, root) as opened:
            files = opened.prune(unused_for_s)
    pruned = prune(root, unused_for_s, everything=everything)
    if as_json:
        in_use, removed = ([_plain(entry) for entry in some] for some in (pruned.in_use, pruned.removed))
        out_json({"folder": str(root), "removed": removed, "in_use": in_use, "files_removed_from_device": files})
        return
    if device:
        out(f"removed {counted(files, 'file')} from {device}")
    out(f"removed {_amount(pruned.removed)}")
    if pruned.in_use:
        out(f"kept {_amount(pruned.in_use)}: in use")


def _list(root: Path, as_json: bool) -> None:
    from harness.tools.cache.entries import entries

    listed, now = entries(root), time.time()
    if as_json:
        out_json({"folder": str(root), "entries": [_plain(entry) for entry in listed]})
        return
    rows = [
        (e.kind, e.key, e.title, size(e.size_bytes), f"{max(0.0, now - e.used_at) / 3600:.1f} h ago") for e in listed
    ]
    out(table(rows, ("kind", "key", "what", "size", "used"), prose=("what",), spare=("key",)))
    out(f"\n{_amount(listed)} in {root}")


def _plain(entry: CacheEntry) -> dict[str, object]:
    facts = {"kind": entry.kind, "key": entry.key, "what": entry.title, "size_bytes": entry.size_bytes}
    return {**facts, "used_at": entry.used_at}


def _amount(entries: Sequence[CacheEntry]) -> str:
    return f"{counted(len(entries), 'entry', 'entries')}, {size(sum(entry.size_bytes for entry in entries))}"
