"""What is known of a device and of a case beside its samples, in words, and the command that measures it again."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from device_runner.device import PeakMemory
from harness.base.tables import size
from harness.compile.quirks import QUIRKS
from harness.judge.report import words
from harness.judge.report.matrix import Entry, Matrix
from harness.judge.report.part_view import part_facts, views_of
from harness.judge.sides import histogram_of, mean_clocks
from harness.judge.stats.session import location_ms
from harness.measure.facts import Batches
from harness.measure.records.record import Record

NAMING = ("--model", "--shape", "--input", "--fix")
"""Options that name a model and its inputs."""

Facts = list[tuple[str, str]]
MOST_NAMED = 5
"""Maximum number of workarounds to name if it is unknown which of them changed the build."""


def device_facts(matrix: Matrix) -> Facts:
    """Return the facts of the device, and its state during the measurement."""
    record, entries = matrix.record, matrix.entries
    identity = record.identity
    sessions = [session for entry in entries for session in entry.sessions]
    began = sorted(session.started for session in sessions)
    facts = [
        ("SoC", identity.soc),
        ("GPU", identity.gpu),
        ("CLML", identity.clml),
        ("memory", size(identity.memory_bytes) if identity.memory_bytes else ""),
        ("TVM", ", ".join(sorted({session.compilers.tvm for session in sessions}))),
        ("clocks", clock_text(sessions)),
        ("GPU heat", heat_text(sessions)),
        ("measured", words.between(began[0], began[-1])),
        ("ROM", identity.rom),
        ("driver", identity.driver),
        ("workarounds", workarounds_text(sessions)),
    ]
    return [(name, value) for name, value in facts if value]


def case_facts(entry: Entry, others: Iterable[tuple[str, str]] = ()) -> Facts:
    """Return the facts of a case beside its samples. `others` are facts of other runs of its build."""
    record = entry.record
    memory, batches = record.part(PeakMemory) or PeakMemory(), record.part(Batches)
    facts = [
        ("error", words.error_text(record.max_abs_err, record.tolerance)),
        ("judge", record.judge),
        *part_facts(record),
        ("throughput", _throughput(entry, batches)),
        *others,
        ("first run", words.latency(record.first_run_ms)),
        ("load", words.latency(record.init_ms)),
        ("library", size(record.library_bytes)),
        ("planned memory", size(record.facts.get("storage_bytes"))),
        ("peak memory", size(memory.process_bytes)),
        ("peak GPU memory", size(memory.gpu_bytes)),
        ("kernels", str(record.facts.get("kernels", "-"))),
        ("launches", str((batches and batches.launches) or "-")),
        ("compiled in", f"{record.compile_s:.1f} s" if record.compile_s is not None else "-"),
        ("sessions", str(len(entry.sessions))),
        ("workarounds", workarounds_text([record])),
        ("remarks", ", ".join(entry.remarks)),
    ]
    return [(name, value) for name, value in facts if value not in ("", "-")]


def workarounds_text(records: Sequence[Record]) -> str:
    """Return the workarounds that changed the build; the number of active ones if that is unknown."""
    built = [record for record in records if record.effective_quirks is not None]
    effective = sorted({quirk for record in built for quirk in record.effective_quirks or ()})
    active = {quirk for record in records for quirk in record.quirks}
    if built or len(active) <= MOST_NAMED:
        return ", ".join(effective if built else sorted(active))
    return f"{len(active)} were active: adreno-bench quirks lists them"


def _throughput(entry: Entry, batches: Batches | None) -> str:
    if batches and math.isfinite(batched := location_ms(batches.batched_ms)):
        return f"{1000 / batched:.4g} /s in batches of {batches.batch}"
    return f"{1000 / entry.wall_ms:.4g} /s one by one" if entry.wall_ms else ""


def clock_text(records: Sequence[Record]) -> str:
    """Return the most used clock of the GPU, over all sessions that have it."""
    shares = mean_clocks([histogram_of(record) for record in records])
    most = max(shares, key=lambda clock: shares[clock], default="")
    return f"{shares[most]:.0%} of the time at {most} MHz" if most else ""


def heat_text(records: Sequence[Record]) -> str:
    """Between which temperatures the GPU was, before and after the samples."""
    readings = [record.steadiness.get(when) for record in records for when in ("before", "after")]
    heats = [reading.get("gpu_c") for reading in readings if isinstance(reading, dict)]
    temperatures = [heat for heat in heats if isinstance(heat, (int, float)) and math.isfinite(heat)]
    if not temperatures:
        return ""
    low, high = min(temperatures), max(temperatures)
    return f"{low:.0f} °C" if round(low) == round(high) else f"{low:.0f} to {high:.0f} °C"


def reproduce(record: Record, suite: Path | None = None, *, published: bool = False) -> str:
    """Return the command that measures a record again, of its own suite file or of `suite`, where both are.

    What is `published` names a phone by its SoC: its serial stays in the records.
    """
    device = ["--device", _label(record) if published else record.device]
    if own := [word for view in views_of(record) for word in view.command(record)]:
        words = [word if word.startswith("-") or not published else Path(word).name for word in own]
        return shlex.join(["adreno-bench", *words, *device, *["--as-shipped"] * record.as_shipped])
    words = ["adreno-bench", "run", *(["--suite", str(suite)] if suite else [])]
    named = naming_options(record.model_options, ("--schedules", *NAMING, *(() if suite else ("--suite",))))
    words += [word for option, value in named for word in (option, Path(value).name if published else value)]
    words += [*device, "--case", record.case]
    if record.as_shipped:
        essential = {quirk.id for quirk in QUIRKS if quirk.essential}
        chosen = [quirk for quirk in record.quirks if quirk not in essential]
        words += ["--as-shipped", *(word for quirk in chosen for word in ("--with-quirk", quirk))]
    return shlex.join(words)


def naming_options(options: Sequence[str], names: Sequence[str] = NAMING) -> list[tuple[str, str]]:
    """Return the options of these names, each with its value.

    A record may be foreign, so nothing else is taken from it.
    """
    return [pair for pair in pairwise(options) if pair[0] in names and not pair[1].startswith("-")]


def _label(record: Record) -> str:
    """Return the device by its SoC if its name is its serial, which stays in the records."""
    identity = record.identity
    if identity.kind != "phone":
        return record.device
    return f"soc={identity.soc}" if identity.soc else "SERIAL"
