"""Records in files for spreadsheets, pull requests and programs: what the `--export-...` options write."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from device_runner.device import PeakMemory
from device_runner.files import write_whole
from harness.base.outcome import ExitCode, Outcome, Owner
from harness.base.terminal import tell
from harness.judge.remarks import remarks
from harness.judge.report.matrix import entries_of, markdown, matrices_of
from harness.judge.sides import by_series
from harness.judge.stats.pair import finite
from harness.judge.stats.sample_summary import summarise_samples
from harness.judge.stats.session import location_ms
from harness.measure.records.record import Record

SCHEMA: Literal[1] = 1


class Export(BaseModel):
    """Base of all exports."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return self.model_dump(mode="json", by_alias=True)


class CaseExport(Export):
    """One session of a case. Times in ms; what is not known is null."""

    case: str
    model: str
    path: str
    precision: str
    tuning: str
    as_shipped: bool
    identity: str
    gpu: str
    tvm: str
    emulated: list[str]
    outcome: Outcome
    owner: Owner
    message: str
    remarks: list[str]
    artifact: str
    quirks: list[str]
    started_at: str
    latency_ms: float | None
    """The number of tables and verdicts. Null if the case is not right, or if its path is emulated."""
    min_ms: float | None
    median_ms: float | None
    low_ms: float | None
    high_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    mean_ms: float | None
    stddev_ms: float | None
    device_latency_ms: float | None
    first_run_ms: float | None
    init_ms: float | None
    max_abs_err: float | None
    tolerance: float | None
    library_bytes: int | None
    peak_memory_bytes: int | None
    peak_gpu_memory_bytes: int | None
    wall_ms: list[float]
    device_ms: list[float]


class RunExport(Export):
    """The cases of a run."""

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    verdict: str
    """Verdict on the whole: the meaning of the exit code."""
    exit_code: int
    cases: list[CaseExport]


def verdict_of(code: ExitCode) -> str:
    """Return what an exit code means, in a word: `wrong-or-broken`."""
    return code.name.lower().replace("_", "-")


def export_run(records: Iterable[Record], code: ExitCode) -> RunExport:
    """Convert records to an export."""
    return RunExport(verdict=verdict_of(code), exit_code=code, cases=[export_case(record) for record in records])


def json_text(export: Export) -> str:
    """Return an export as JSON."""
    return json.dumps(export.plain(), indent=1, allow_nan=False) + "\n"


def csv_text(cases: Iterable[Export]) -> str:
    """Return a line for each case with all but samples and kernels; both sides of a comparison stand in one line."""
    rows = [_flat(case.model_dump(mode="json", exclude={"kernels"})) for case in cases]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def benchmark_text(records: Iterable[Record]) -> str:
    """Return the samples as pytest-benchmark keeps them, in seconds, for `pytest-benchmark compare`."""
    all_records = list(records)
    benchmarks = [stats for record in all_records if (stats := _benchmark(record))]
    head = {"machine_info": {"node": platform.machine(), "machine": platform.machine()}, "commit_info": {}}
    about = {"datetime": max((record.started_at for record in all_records), default=""), "version": "5.0.0"}
    return json.dumps({**head, "benchmarks": benchmarks, **about}, indent=1) + "\n"


def write_records(
    records: Sequence[Record],
    code: ExitCode,
    *,
    export_json: Path | None,
    export_csv: Path | None,
    export_markdown: Path | None,
    export_pytest_benchmark: Path | None,
) -> None:
    """Write the requested files."""
    if export_json:
        write_whole(export_json, json_text(export_run(records, code)))
    if export_csv:
        write_whole(export_csv, csv_text(export_run(records, code).cases))
    if export_markdown:
        write_whole(export_markdown, markdown(matrices_of(entries_of(by_series(records).values()))) + "\n")
    if export_pytest_benchmark:
        write_whole(export_pytest_benchmark, benchmark_text(records))
        if not any(map(_benchmark, records)):
            why = "quick looks, emulated paths and wrong answers have none to compare"
            tell(f"{export_pytest_benchmark} has no samples: {why}")


def export_case(record: Record) -> CaseExport:
    """Return a session for programs; what a record has under the same name is taken as it is there."""
    right = record.outcome is Outcome.OK and record.path not in record.emulated
    numbers = summarise_samples(record.wall_ms) if right else None
    memory = record.part(PeakMemory) or PeakMemory()
    names = ("min_ms", "median_ms", "low_ms", "high_ms", "p90_ms", "p99_ms", "max_ms", "mean_ms", "stddev_ms")
    own: dict[str, Any] = {
        "identity": record.identity_key,
        "gpu": record.identity.gpu,
        "tvm": record.compilers.tvm,
        "remarks": [remark.word for remark in remarks(record)],
        "latency_ms": finite(location_ms(record.wall_ms)) if right else None,
        **{name: getattr(numbers, name, None) for name in names},
        "device_latency_ms": finite(location_ms(record.device_ms)) if right else None,
        "max_abs_err": finite(record.max_abs_err),
        "tolerance": finite(record.tolerance),
        "peak_memory_bytes": memory.process_bytes,
        "peak_gpu_memory_bytes": memory.gpu_bytes,
    }
    same = {name: getattr(record, name) for name in CaseExport.model_fields.keys() - own.keys()}
    return CaseExport(**same, **own)


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested values into columns: a list of texts becomes one cell, samples are left out."""
    row: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            row |= {f"{name}_{inner}": part for inner, part in _flat(value).items()}
        elif not isinstance(value, list):
            row[name] = value
        elif not name.endswith("_ms"):
            row[name] = "; ".join(map(str, value))
    return row


def _benchmark(record: Record) -> dict[str, Any] | None:
    summary = summarise_samples(record.comparable_ms) if record.path not in record.emulated else None
    if summary is None:
        return None
    times = {"min": summary.min_ms, "max": summary.max_ms, "mean": summary.mean_ms, "stddev": summary.stddev_ms}
    times |= {
        "median": summary.median_ms,
        "q1": summary.q1_ms,
        "q3": summary.q3_ms,
        "iqr": summary.q3_ms - summary.q1_ms,
    }
    times |= {"total": math.fsum(record.comparable_ms), "ld15iqr": summary.min_ms, "hd15iqr": summary.max_ms}
    stats = {name: ms / 1000 for name, ms in times.items()}
    counts = {"rounds": summary.count, "iterations": 1, "iqr_outliers": 0, "stddev_outliers": 0, "outliers": "0;0"}
    return {
        "group": record.model,
        "name": record.case,
        "fullname": f"{record.identity_key}::{record.case}",
        "params": None,
        "param": None,
        "extra_info": {"outcome": record.outcome.value, "emulated": list(record.emulated)},
        "options": {},
        "stats": {**stats, **counts, "ops": 1000 / summary.mean_ms, "data": [ms / 1000 for ms in record.comparable_ms]},
    }
