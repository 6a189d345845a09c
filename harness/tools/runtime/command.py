"""`adreno-bench runtime`: TVM's runtime for phones and boards, which a person builds and this host keeps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from device_runner.runtimes.phone import RuntimeStore
from device_runner.store import cache_root
from harness.base.tables import counted, size, table
from harness.base.terminal import tell
from harness.cli.options import AsJson
from harness.judge.report.screen import out, out_json
from harness.tools.runtime import check

runtime = typer.Typer(
    help="Keep TVM's runtime for phones and boards on this host.",
    epilog="docs/tutorial/first-phone.md explains how to build one.",
    no_args_is_help=True,
)


@runtime.command()
def add(folder: Annotated[Path, typer.Argument(help="Folder with tvm_rpc and its shared libraries.")]) -> None:
    """Check a folder with TVM's runtime for a device, and keep it.

    Takes only tvm_rpc, TVM's runtime libraries and what they need.
    """
    try:
        contents = check.examine(folder, check.host_interface())
    except check.RuntimeRefused as refused:
        for reason in refused.reasons[1:] and refused.reasons:
            tell(f"  {reason}")
        raise
    added = RuntimeStore(cache_root()).add(contents)
    out(f"{added.digest} for {added.abi}: {counted(len(contents.files), 'file')}, {size(added.size_bytes)}")
    for note in contents.notes:
        out(f"  {note}")


@runtime.command("list")
def list_runtimes(as_json: AsJson = False) -> None:
    """List the runtimes that are kept."""
    runtimes = RuntimeStore(cache_root()).entries()
    if as_json:
        fields = ("digest", "abi", "tvm", "size_bytes", "added_at")
        out_json([{name: getattr(runtime, name) for name in fields} for runtime in runtimes])
        return
    if not runtimes:
        out("no runtime yet: `adreno-bench runtime add FOLDER` adds one")
        return
    rows = [
        (r.digest, r.abi, r.tvm, size(r.size_bytes), time.strftime("%Y-%m-%d %H:%M", time.localtime(r.added_at)))
        for r in runtimes
    ]
    out(table(rows, ("runtime", "abi", "checked against TVM", "size", "added"), prose=("checked against TVM",)))


@runtime.command()
def remove(
    name: Annotated[str, typer.Argument(help="Name as `list` shows it, or its first letters.")],
) -> None:
    """Remove a runtime."""
    removed = RuntimeStore(cache_root()).remove(name)
    out(f"removed {removed.digest} for {removed.abi}")
