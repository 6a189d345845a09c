"""`adreno-bench cache`: what the store holds, and making room."""

from __future__ import annotations

from typing import Annotated

import typer


def cache(
    prune: Annotated[bool, typer.Option("--prune", help="Remove entries instead of showing them.")] = False,
    unused_days: Annotated[
        float | None,
        typer.Option("--unused-days", min=0, help="With --prune: only entries not used for this long (default 14)."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="With --prune: every entry.")] = False,
    device: Annotated[
        str | None, typer.Option("--device", help="With --prune: also what was pushed to this device so long ago.")
    ] = None,
) -> None:
    """Show what has been compiled and kept, or prune it.

    Everything in the store can be made again. ADRENO_BENCH_CACHE chooses its folder.
    """
    import time

    from device_runner.registry import open_device
    from harness.cli.screen import out
    from harness.cli.table import plain_table, size
    from harness.failures import UsageError
    from harness.store import Store, cache_root

    if (everything or unused_days is not None or device) and not prune:
        raise UsageError("--all, --unused-days and --device go with --prune", hint="add --prune")
    root = cache_root()
    stores = [Store(root, kind) for kind in ("artifacts", "oracles", "tunings", "toolchains", "harness", "bisect")]
    if prune:
        age_s = 86_400 * (0.0 if everything else 14.0 if unused_days is None else unused_days)
        removed = [entry for store in stores for entry in store.prune(age_s)]
        out(f"removed {len(removed)} entries, {size(sum(entry.size_bytes for entry in removed))}")
        if device:
            with open_device(device, root) as opened:
                out(f"removed {opened.prune(age_s)} files from {device}")
        return
    entries = [entry for store in stores for entry in store.entries()]
    now = time.time()
    rows = [
        (e.kind, e.key, e.title, size(e.size_bytes), f"{max(0.0, now - e.used_at) / 3600:.1f} h ago") for e in entries
    ]
    out(plain_table(rows, ("kind", "key", "what", "size", "used")))
    out(f"\n{len(entries)} entries, {size(sum(entry.size_bytes for entry in entries))} in {root}")
