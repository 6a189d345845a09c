"""The command that measures a case again as a record has it."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.quirks import QUIRKS
from harness.run.record import Record


def reproduce(record: Record, suite: Path | None = None, *, published: bool = False) -> str:
    """Return the command. Without `suite` it is for whoever stands in the folder of the suite file.

    What is `published` names a phone by its SoC: its serial stays in the records.
    """
    words = ["adreno-bench", "run", *(["--suite", str(suite)] if suite else [])]
    words += ["--device", _label(record) if published else record.device, "--case", record.case]
    return shlex.join([*words, *(_as_shipped(record) if record.as_shipped else [])])


def _label(record: Record) -> str:
    """Return the device by its SoC if its name is its serial, which stays in the records."""
    identity = record.identity
    if identity.kind != "phone":
        return record.device
    return f"soc={identity.soc}" if identity.soc else "SERIAL"


def _as_shipped(record: Record) -> list[str]:
    essential = {quirk.id for quirk in QUIRKS if quirk.essential}
    chosen = [quirk for quirk in record.quirks if quirk not in essential]
    return ["--as-shipped", *(word for quirk in chosen for word in ("--with-quirk", quirk))]
