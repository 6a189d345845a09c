"""`adreno-bench records`: records of many runs and hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.base.failures import UsageError
from harness.base.tables import counted, size
from harness.base.terminal import tell
from harness.cli.options import AsJson
from harness.judge.report.screen import Screen, out, out_json
from harness.measure.progress import Tally
from harness.tools.shared.outputs import require_output_folder

records = typer.Typer(help="Keep the records of many runs and hosts in Parquet.", no_args_is_help=True)


@records.callback()
def _group() -> None:
    """Make `compact` a command of its own: with one command alone, typer leaves its name out."""


@records.command()
def compact(
    places: Annotated[
        list[str], typer.Argument(metavar="PLACE...", help="Records: files, folders, globs or URLs of JSON lines.")
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Folder of the Parquet files, a folder a day.",
            callback=require_output_folder,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Add records to a dataset of Parquet files, which commands read much faster than JSON lines.

    Pass the folder to --records, like a file. The same call again adds what is new. The JSON lines stay as they are;
    once they are in the dataset, you can remove them.
    """
    from harness.measure.records.index import skipped_lines
    from harness.measure.records.places import LINES, require_records
    from harness.tools.lake.compaction import compact as compact_files
    from harness.tools.lake.parquet import SUFFIX
    from harness.tools.lake.urls import files_of

    for place in places:
        require_records(place)
    listed = [file for place in places for file in files_of(place, tell)]
    files = list(dict.fromkeys(file.resolve() for file in listed if file.suffix == LINES))
    if not files:
        raise UsageError(f"there are no files of JSON lines in {', '.join(places)}", hint=f"they end in {LINES}")
    if inside := next((file for file in files if file.is_relative_to(to.resolve())), None):
        raise UsageError(f"{inside} is in the dataset itself", hint="name another folder with --out")
    tally = Tally()
    tally.expect(len(files))
    with Screen() as screen:

        def watch(done: int) -> None:
            tally.did(done)
            screen.step("compacting files", str(tally))

        watch(0)
        result = compact_files(files, to, watch)
    whole = sum(file.stat().st_size for file in to.rglob(f"*{SUFFIX}"))
    if as_json:
        facts = {"records": result.records, "files": len(files), "skipped": result.skipped}
        out_json({**facts, "folder": str(to), "size_bytes": whole})
        return
    for line in skipped_lines(result.skipped):
        tell(line)
    out(f"{to}: {counted(result.records, 'record')} added or there already; it has {size(whole)} now")
