"""Options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SuiteFile = Annotated[Path, typer.Option("--suite", help="The suite file.", show_default=True)]
CaseGlob = Annotated[
    list[str] | None,
    typer.Option(
        "--case", metavar="GLOB", help="Only cases whose id matches, e.g. 'resnet18-*' or '*-clml-*-tuned'. Repeatable."
    ),
]
DeviceName = Annotated[
    str,
    typer.Option("--device", help="virtual, local, the adb serial of a phone (see `adreno-bench devices`), or labels."),
]
DeviceNames = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        help="virtual (the default), local, the adb serial of a phone, all, labels such as soc=SM8650, or virtual:4 "
        "for four virtual phones. Repeatable.",
    ),
]
TrackerAddress = Annotated[
    str | None,
    typer.Option("--tracker", metavar="HOST:PORT", help="Devices that other hosts offer through this TVM RPC tracker."),
]
RecordsFile = Annotated[Path, typer.Option("--records", help="File of records (JSON lines).")]
AsShipped = Annotated[
    bool,
    typer.Option("--as-shipped", help="Work around only those upstream defects without which nothing compiles."),
]
WithQuirks = Annotated[
    list[str] | None,
    typer.Option(
        "--with-quirk", metavar="QUIRK", help="With --as-shipped: work around this defect all the same. Repeatable."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]
BaselinesFolder = Annotated[Path, typer.Option("--baselines", help="Folder of baselines.")]
Relevant = Annotated[
    float, typer.Option("--relevant", metavar="PERCENT", min=0.1, max=1000, help="Smallest change worth a verdict.")
]
FloorMs = Annotated[float, typer.Option("--floor-ms", min=0, help="Smallest change worth a verdict, in ms.")]
MostSessions = Annotated[
    int, typer.Option("--most-sessions", min=4, help="Fresh sessions that confirming one suspect may cost.")
]
CompilerConfig = Annotated[
    Path, typer.Option("--config", help="asv's configuration of the compiler whose commits are meant.")
]

DEFAULT_DEVICE = "virtual"
DEFAULT_BASELINES = Path("baselines")
DEFAULT_SUITE = Path("adreno-bench.toml")
DEFAULT_RECORDS = Path("records.jsonl")
DEFAULT_COMPILER_CONFIG = Path("asv.tvm.conf.json")
