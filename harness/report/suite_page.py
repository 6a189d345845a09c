"""The page of a run, a gate or a comparison: one file that needs no network and that a colleague can be sent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from harness.history.events import CaseState
from harness.judge.sides import histogram_of
from harness.judge.stats.sample_summary import SampleSummary, summarise_samples
from harness.judge.stats.session import location_ms
from harness.paths.clml.report import render
from harness.probes.latency import KERNELS
from harness.profile.profile import Profile, kernels_file, read_profiles
from harness.report import words
from harness.report.comparison import ComparisonExport
from harness.report.kernel_pages import rows_of
from harness.report.matrix import Entry, Matrix, entries_of, matrices_of
from harness.report.page import FILTER, write_page
from harness.report.strips import samples_strip
from harness.run.record import Record
from harness.run.reproduce import reproduce
from harness.tables import size

Facts = list[tuple[str, str]]


@dataclass(frozen=True)
class Clock:
    """The samples of one clock, over all sessions of a case."""

    name: str
    location_ms: float
    numbers: SampleSummary
    strip: Markup


def write_report(
    file: Path,
    builds: Iterable[Sequence[Record]],
    profiles: Mapping[str, Profile],
    comparison: ComparisonExport | None = None,
) -> None:
    """Write the page. Raises SetupMissing without jinja2, RigFailure if the disk refuses it.

    Args:
        file: The page to write.
        builds: The sessions of the latest build of each series.
        profiles: What is known of the kernels, by artifact.
        comparison: What a gate or a comparison said of them.
    """
    matrices = matrices_of(entries_of(builds, profiles))
    write_page(
        file,
        "report.html.j2",
        scripts=[FILTER],
        title="Report",
        matrices=matrices,
        states=_states(matrices),
        kinds=sorted({kind for matrix in matrices for kind in matrix.kinds}),
        comparison=comparison,
        device_facts=device_facts,
        clocks=clocks_of,
        case_facts=case_facts,
        kernels=lambda entry: rows_of(entry.profile) if entry.profile else [],
        partitions=lambda record: render(record.offload) if record.offload else "",
        reproduce=reproduce,
    )


def profiles_of(records: Sequence[Path], artifacts: set[str]) -> dict[str, Profile]:
    """The newest profile of each artifact, from the files beside files of records. Raises OSError, ValueError."""
    files = [kernels_file(file) for file in records]
    return {
        profile.artifact: profile
        for file in files
        if file.exists()
        for profile in read_profiles(file, lambda head: head.artifact in artifacts)
    }


def _states(matrices: Sequence[Matrix]) -> dict[CaseState, int]:
    """How many series are in which state."""
    counts = Counter(entry.state for matrix in matrices for entry in matrix.entries)
    return {state: counts[state] for state in CaseState if counts[state]}


def device_facts(matrix: Matrix) -> Facts:
    """What the device is, and how it was while it measured."""
    record, entries = matrix.record, matrix.entries
    identity = record.identity
    records = [one for entry in entries for one in entry.sessions]
    began = sorted(one.started for one in records)
    quirks = sorted({quirk for one in records for quirk in one.quirks})
    facts = [
        ("SoC", identity.soc),
        ("GPU", identity.gpu),
        ("driver", identity.driver),
        ("CLML", identity.clml),
        ("ROM", identity.rom),
        ("memory", size(identity.memory_bytes) if identity.memory_bytes else ""),
        ("TVM", ", ".join(sorted({one.compilers.tvm for one in records}))),
        ("clocks", _clock_text(records)),
        ("GPU heat", _heat_text(records)),
        ("measured", words.between(began[0], began[-1])),
        ("workarounds", ", ".join(quirks)),
    ]
    return [(name, value) for name, value in facts if value]


def clocks_of(entry: Entry) -> Iterator[Clock]:
    """Both clocks of a case, as far as it has samples."""
    right = [record for record in entry.sessions if record.outcome is entry.record.outcome]
    device = "device" if entry.record.device_clock in ("", KERNELS) else "device (whole recordings)"
    for name, sessions in (("wall", [one.wall_ms for one in right]), (device, [one.device_ms for one in right])):
        samples = [ms for session in sessions for ms in session]
        numbers = summarise_samples(samples)
        if numbers:
            one = entry.wall_ms if name == "wall" and entry.wall_ms else location_ms(samples)
            yield Clock(name, one, numbers, samples_strip(sessions, f"{name} time"))


def case_facts(entry: Entry) -> Facts:
    """All that is known of a case beside its samples."""
    record = entry.record
    facts = [
        ("error", words.error_text(record.max_abs_err, record.tolerance)),
        ("judge", record.judge),
        ("top-1", _top_one(record)),
        ("throughput", _throughput(entry)),
        ("first run", words.latency(record.first_run_ms)),
        ("load", words.latency(record.init_ms)),
        ("library", size(record.library_bytes)),
        ("planned memory", size(record.facts.get("storage_bytes"))),
        ("peak memory", size(record.peak_memory_bytes)),
        ("peak GPU memory", size(record.peak_gpu_memory_bytes)),
        ("kernels", str(record.facts.get("kernels", "-"))),
        ("launches", str(record.launches or "-")),
        ("compiled in", f"{record.compile_s:.1f} s" if record.compile_s is not None else "-"),
        ("sessions", str(len(entry.sessions))),
        ("workarounds", ", ".join(record.quirks)),
        ("remarks", ", ".join(entry.remarks)),
    ]
    return [(name, value) for name, value in facts if value not in ("", "-")]


def _top_one(record: Record) -> str:
    counted = record.top_one
    if counted is None:
        return ""
    return f"{counted.right} of {counted.inputs} labelled inputs right, {counted.oracle_right} by the oracle"


def _throughput(entry: Entry) -> str:
    batched = location_ms(entry.record.batched_ms)
    if math.isfinite(batched):
        return f"{1000 / batched:.4g} /s in batches of {entry.record.batch}"
    return f"{1000 / entry.wall_ms:.4g} /s one by one" if entry.wall_ms else ""


def _clock_text(records: Sequence[Record]) -> str:
    """The clock of the GPU that was used most, over all sessions that know it."""
    histograms = [found for record in records if (found := histogram_of(record.steadiness))]
    if not histograms:
        return ""
    shares: dict[str, float] = {}
    for one in histograms:
        for clock, share in one.items():
            shares[clock] = shares.get(clock, 0.0) + share / len(histograms)
    most = max(shares, key=lambda clock: shares[clock])
    return f"{shares[most]:.0%} of the time at {most} MHz"


def _heat_text(records: Sequence[Record]) -> str:
    """Between which temperatures the GPU was, before and after the samples."""
    readings = [record.steadiness.get(when) for record in records for when in ("before", "after")]
    found = [one["gpu_c"] for one in readings if isinstance(one, dict) and isinstance(one.get("gpu_c"), (int, float))]
    if not found:
        return ""
    low, high = min(found), max(found)
    return f"{low:.0f} °C" if round(low) == round(high) else f"{low:.0f} to {high:.0f} °C"
