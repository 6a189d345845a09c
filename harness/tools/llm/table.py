"""The table that llama-bench prints (llama.cpp, tools/llama-bench), with error and divergence beside the rate."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence

from harness.base.outcome import Outcome
from harness.base.tables import markdown_table, size, table
from harness.compile.artifacts.artifact import Artifact
from harness.judge.report.part_view import PartView
from harness.judge.report.table import complaints
from harness.measure.records.record import Record
from harness.tools.llm.cases import LlmTask
from harness.tools.llm.lowering import DEFAULT, MLC, PIPELINES
from harness.tools.llm.part import LlmPart

COLUMNS = ("model", "size", "params", "backend", "test", "t/s", "error", "rounding", "KL", "kernels", "outcome")
NUMBERS = ("size", "params", "t/s", "error", "rounding", "KL", "kernels")
SPARE = ("params", "kernels", "size", "KL", "error")
MIB, GIB = 1 << 20, 1 << 30


def rows(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Return a row for each record of a language model."""
    return [_row(record) for record in records if record.part(LlmPart)]


def as_text(records: Sequence[Record]) -> str:
    """Return the table for a terminal, and a line for whatever is not right."""
    supported = [record for record in records if record.outcome is not Outcome.UNSUPPORTED]
    drawn = [table(rows(supported), COLUMNS, right=NUMBERS, spare=SPARE)] if supported else []
    return "\n".join([*drawn, *complaints(records), *_ratios(records)]).lstrip("\n")


def as_markdown(records: Sequence[Record]) -> str:
    """Return the table for a pull request."""
    return markdown_table(rows(records), COLUMNS)


def as_csv(records: Sequence[Record]) -> str:
    """Return a line for each record."""
    text, chosen = io.StringIO(), [record for record in records if record.part(LlmPart)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("case", *COLUMNS, "device", "gpu", "driver", "tvm"))
    writer.writerows((r.case, *_row(r), r.device, r.identity.gpu, r.identity.driver, r.tvm) for r in chosen)
    return text.getvalue()


BUILD_COLUMNS = ("library", "size", "kernels", "weights", "cache", "planned", "together", "largest buffer", "outcome")
"""Of a build: what its memory on the device consists of."""


def build_row(task: LlmTask, result: object) -> tuple[str, ...]:
    """Return a row for a build: its library, and the memory that it will take on a device."""
    if not isinstance(result, Artifact):
        return (task.title, *["-"] * 7, getattr(result, "message", ""))
    facts = result.compiled.facts
    weights, cache, planned = facts["weights_bytes"], facts["cache_bytes"], facts.get("application_bytes")
    sizes = (weights, cache, planned, weights + cache + (planned or 0), facts["buffer_bytes"])
    return (task.title, size(result.size_bytes), str(facts["kernels"]), *map(size, sizes), "built")


def _row(record: Record) -> tuple[str, ...]:
    part = record.part(LlmPart)
    assert part
    pipeline = "" if part.pipeline == MLC else f" {part.pipeline}"
    return (
        f"{part.model} {part.format}",
        _size(part.weights_bytes) if part.weights_bytes else "-",
        f"{part.parameters / 1e6:.2f} M" if part.parameters < 1e9 else f"{part.parameters / 1e9:.2f} B",
        f"TVM {record.tvm} {record.path}{pipeline}",
        part.test if (part.chunk or part.tokens) >= part.tokens else f"{part.test} in steps of {part.chunk}",
        _rate(record, part.tokens),
        "-" if part.error is None else f"{part.error:.1e}",
        "-" if part.rounding is None else f"{part.rounding:.2g}",
        "-" if part.divergence is None else f"{part.divergence:.1e}",
        str(part.launches or "-"),
        record.outcome.value,
    )


def _size(count: int) -> str:
    """Return a number of bytes as llama-bench prints it."""
    return f"{count / GIB:.2f} GiB" if count >= GIB else f"{count / MIB:.2f} MiB"


def _rate(record: Record, tokens: int) -> str:
    """Return mean and standard deviation of tokens a second."""
    rates = [1e3 * tokens / ms for ms in record.wall_ms if ms > 0]
    if not rates:
        return "-"
    spread = statistics.stdev(rates) if len(rates) > 1 else 0.0
    return f"{statistics.mean(rates):.2f} ± {spread:.2f}"


def _ratios(records: Sequence[Record]) -> list[str]:
    """Say how many tokens MLC's pipeline makes for one of TVM's own, where both ran."""
    rates: dict[tuple[str, ...], dict[str, float]] = {}
    for record in records:
        if (part := record.part(LlmPart)) and part.tokens_per_s:
            key = part.model, part.format, part.test, record.tvm, record.identity_key
            rates.setdefault(key, {})[part.pipeline] = part.tokens_per_s
    lines = [
        f"  {' '.join(key[:3])}: pipeline {MLC} makes {of[MLC] / of[DEFAULT]:.1f} times the tokens of {DEFAULT}"
        for key, of in rates.items()
        if of.keys() >= {*PIPELINES}
    ]
    return ["", *lines] if lines else []


def _facts(record: Record) -> list[tuple[str, str]]:
    part = record.part(LlmPart)
    assert part
    error = "" if part.error is None else f", error {part.error:.1e}, KL {part.divergence:.1e}"
    return [(f"{part.test}, tokens/s", f"{_rate(record, part.tokens)}{error}")]


def _command(record: Record) -> list[str]:
    part = record.part(LlmPart)
    if not part or not {"--model", "--library"}.intersection(part.options):
        return []
    words = ["llm", "run", *part.options, "--test", part.test, "--format", part.format, "--pipeline", part.pipeline]
    return [*words, *(["--chunk", str(part.chunk)] if part.pinned else [])]


VIEW = PartView(as_text, _facts, command=_command, instead=True)
