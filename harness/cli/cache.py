"""`adreno-bench cache`: what is kept, and making room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cache import Entry

DEFAULT_UNUSED_DAYS = 14.0


def cache(
    prune: Annotated[bool, typer.Option("--prune", help="Remove entries instead of showing them.")] = False,
    unused_days: Annotated[
        float | None,
        typer.Option("--unused-days", min=0, help="With --prune: only entries not used for this long (default 14)."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="With --prune: every entry.")] = False,
    device: Annotated[
        str | None,
        typer.Option("--device", help="With --prune: also files pushed to this device and not used for as long."),
    ] = None,
) -> None:
    """Show what has been compiled and kept, or prune it.

    Everything listed can be made again, and what is in use is never removed. Runtimes that you added for phones are
    not listed: see `adreno-bench runtime`. ADRENO_BENCH_CACHE chooses the folder.
    """
    from harness.failures import UsageError
    from harness.store import cache_root

    if (everything or unused_days is not None or device) and not prune:
        raise UsageError("--all, --unused-days and --device go with --prune", hint="add --prune")
    if prune:
        days = 0.0 if everything else DEFAULT_UNUSED_DAYS if unused_days is None else unused_days
        _prune(cache_root(), 86_400 * days, device)
    else:
        _list(cache_root())


def _prune(root: Path, unused_for_s: float, device: str | None) -> None:
    from device_runner.registry import open_device
    from harness.cache import prune
    from harness.cli.screen import out

    if device:  # first: opening a device may make what the cache is pruned of
        with open_device(device, root) as opened:
            out(f"removed {opened.prune(unused_for_s)} files from {device}")
    pruned = prune(root, unused_for_s)
    out(f"removed {_amount(pruned.removed)}")
    if pruned.in_use:
        out(f"kept {_amount(pruned.in_use)}: in use")


def _list(root: Path) -> None:
    import time

    from harness.cache import entries
    from harness.cli.screen import out
    from harness.cli.table import plain_table, size

    found, now = entries(root), time.time()
    rows = [
        (e.kind, e.key, e.title, size(e.size_bytes), f"{max(0.0, now - e.used_at) / 3600:.1f} h ago") for e in found
    ]
    out(plain_table(rows, ("kind", "key", "what", "size", "used")))
    out(f"\n{_amount(found)} in {root}")


def _amount(entries: Sequence[Entry]) -> str:
    from harness.cli.table import size

    count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    return f"{count}, {size(sum(entry.size_bytes for entry in entries))}"
