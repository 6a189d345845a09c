"""What a person has to know of a case that failed, without running anything."""

from __future__ import annotations

from pathlib import Path

from harness.cases.suite import Tolerance
from harness.judge.baseline import Baseline
from harness.run.record import Record
from harness.run.reproduce import reproduce
from harness.terminal import plain

LABEL = 11


def explain(record: Record, suite: Path, baseline: Baseline | None, justified: Tolerance | None) -> str:
    """One line of what happened, then one line for each fact; the evidence comes last."""
    facts = {
        "model": record.model,
        "path": record.path,
        "precision": f"{record.precision}, {record.tuning}",
        "error": _error(record, justified),
        "judge": record.judge,
        "baseline": _baseline(record, baseline),
        "quirks": ", ".join(record.quirks) or "none",
        "device": f"{record.device} ({record.identity_key})",
        "tvm": f"{record.tvm} with tvm-ffi {record.ffi}",
        "hint": record.hint,
        "reproduce": reproduce(record, suite),
    }
    lines = [f"{name:{LABEL}} {value}" for name, value in facts.items() if value]
    evidence = ["evidence", *(f"  {line}" for line in record.evidence.splitlines())] if record.evidence else []
    return plain("\n".join([headline(record), *lines, *evidence]))


def headline(record: Record) -> str:
    """Return what happened and whose it is.

    Of a wrong answer the message names the first output and index that differ.
    """
    return plain(f"{record.case}: {record.outcome.value} (owner: {record.owner.value}): {record.message}")


def _error(record: Record, justified: Tolerance | None) -> str:
    if record.max_abs_err is None or record.tolerance is None:
        return ""
    reason = f" (the suite allows {justified.relative:g} of the peak: {justified.reason})" if justified else ""
    return f"{record.max_abs_err:.3g} against tolerance {record.tolerance:.3g}{reason}"


def _baseline(record: Record, baseline: Baseline | None) -> str:
    if baseline is None:
        return f"none on {record.identity_key}"
    error = "" if baseline.max_abs_err is None else f", off by {baseline.max_abs_err:.3g}"
    return f"right{error}, with tvm {baseline.tvm} and quirks {', '.join(baseline.quirks) or 'none'}"
