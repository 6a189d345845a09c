"""`adreno-bench devices`: what there is to run on."""

from __future__ import annotations

import typer

from harness.cli.options import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(devices)


def devices(as_json: AsJson = False) -> None:
    """List the virtual device, this host's OpenCL device, and every phone that adb knows."""
    import dataclasses
    import json

    from device_runner.registry import list_devices
    from harness.artifact import cache_root
    from harness.cli.screen import out
    from harness.cli.table import plain_table

    found = list_devices(cache_root())
    if as_json:
        out(json.dumps([dataclasses.asdict(entry) for entry in found], indent=1))
        return
    rows = [(e.name, e.kind, e.state, ", ".join(f"{k} {v}" for k, v in e.detail.items() if v)) for e in found]
    out(plain_table(rows, ("device", "kind", "state", "detail")))
