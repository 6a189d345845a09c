"""Remarks on a row of a table, beside its outcome.

A remark never changes an outcome. It is computed from the record alone, so that every record gets it. A new one is a
function below and a line in `REMARKS`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.base.case import Precision
from harness.base.outcome import Outcome
from harness.base.tables import listed
from harness.measure.facts import WitnessReport

if TYPE_CHECKING:
    from harness.measure.records.record import Record

MOST_SPREAD = 0.05
"""Half of the samples may lie this far from their median, as a fraction. It is what the warm-up asks of its two
halves and what a drift may reach (`judge/stats/session.py`); at that spread thirty samples leave their location
uncertain by 2.7 % (95 %), just below the smallest change that counts by default, 3 %."""


UNSTEADY, PARTLY_VACUOUS = "unsteady", "partly vacuous"
BRANCH_HINT = "--fix INPUT=NUMBER chooses one for good"
MOST_NAMED = 3
"""Most branches to name; more are only counted."""
VACUOUS_HINT = 'use trained weights, or real inputs: `inputs = "FILE.npz"` (docs/reference/settings.md)'


class Remark(NamedTuple):
    """One remark on a row."""

    word: str
    """One or two words beside the outcome in tables."""
    why: str
    """Text after "WORD: " below the table."""


def remarks(record: Record) -> tuple[Remark, ...]:
    """Return all remarks on a record, in the order of `REMARKS`."""
    looks = (look(record) for look in REMARKS)
    return tuple(remark for remark in looks if remark)


def row_remarks(records: Sequence[Record]) -> tuple[list[tuple[Remark, ...]], str]:
    """Return the remarks on each row of a table, and a shared remark below it; often empty.

    If most rows are unsteady, and at least two, the shared remark replaces theirs, unless several are of one case.
    """
    rows = [remarks(record) for record in records]
    reasons = [next((remark.why for remark in row if remark.word == UNSTEADY), "") for row in rows]
    steady = [record.case for record, why in zip(records, reasons, strict=True) if not why]
    count = len(records) - len(steady)
    series = {(record.case, record.as_shipped, record.identity_key) for record in records}
    if count < 2 or count <= len(steady) or len(series) < len(records):
        return rows, ""
    everyone = "both cases" if count == 2 else f"all {count} cases"
    who = f"all but {', '.join(steady)}" if steady else everyone
    line = f"{who} are {UNSTEADY}: {'; '.join(dict.fromkeys(filter(None, reasons)))}"
    return [tuple(remark for remark in row if remark.word != UNSTEADY) for row in rows], line


def spread_within(samples_ms: Sequence[float]) -> float | None:
    """Median absolute deviation of a session's samples from their median, as a fraction of it; None without any."""
    middle = statistics.median(samples_ms) if samples_ms else 0.0
    return statistics.median(abs(sample - middle) for sample in samples_ms) / middle if middle else None


def _unsteady(record: Record) -> Remark | None:
    """Return whether the samples of an `ok` session lie too far apart, or cannot carry a verdict.

    Nothing is said of samples that nobody compares: those of a quick look, which are three, and emulated ones.
    """
    if record.outcome is not Outcome.OK or not record.comparable_ms or record.path in record.emulated:
        return None
    spread = spread_within(record.wall_ms)
    if spread is not None and spread > MOST_SPREAD:
        # The same words for every row, so that they are one line below the table, which has the number of each.
        why = f"half of the samples lie more than {MOST_SPREAD:.0%} from their median"
        return Remark(UNSTEADY, why)
    from harness.judge.stats.session import LIMITS, as_numbers, check, invalid

    if invalid(as_numbers(record.comparable_ms), LIMITS):  # too few samples, or all the same, are not unsteady
        return None
    reasons = check(record.comparable_ms).reasons
    return Remark(UNSTEADY, "; ".join(reasons)) if reasons else None


_MISSING = {"texture": ("image_kernels", "put no tensor into an image"), "clml": ("subgraphs", "offloaded nothing")}
"""By path: the fact of a build that is 0 if it used nothing of the path, and what that means."""


def as_opencl(path: str, facts: Mapping[str, int]) -> Remark | None:
    """Return whether the build used nothing of its path, by its facts: then it measured path opencl."""
    fact, what = _MISSING.get(path, ("", ""))
    if facts.get(fact) != 0:  # also where the build has no such fact
        return None
    return Remark("as opencl", f"path {path} {what}: whatever was measured is plain OpenCL")


def _branches(record: Record) -> Remark | None:
    """Return which branch of each If was judged, since nothing proves the other."""
    if record.outcome is not Outcome.OK or not record.branches:
        return None
    branches = listed(record.branches, MOST_NAMED)
    return Remark("one branch", f"judged {branches}, and not the other branch ({BRANCH_HINT})")


def _as_float32(record: Record) -> Remark | None:
    """Return whether nothing of a case in half precision is computed in it."""
    halves = record.facts.get("half_kernels"), record.facts.get("half_subgraphs", record.facts.get("subgraphs", 0))
    if record.precision == Precision.FLOAT32.value or any(count != 0 for count in halves):
        return None
    return Remark("as float32", "no kernel computes in half precision: whatever was measured is float32")


def _ties(record: Record) -> Remark | None:
    """Return whether integers differ from the judge's because what they rest on is equal within rounding."""
    if record.outcome is not Outcome.OK or not record.accuracy or not record.accuracy.ties:
        return None
    what = "integer differs" if record.accuracy.ties == 1 else "integers differ"
    why = f"{record.accuracy.ties} {what} from the judge's, where two alternatives are equal within rounding"
    return Remark("tie", why)


def _varies(record: Record) -> Remark | None:
    """Return whether the program did not give the same answer each time."""
    if record.outcome is not Outcome.OK or not record.accuracy or not record.accuracy.varies:
        return None
    return Remark("varies", "a later answer differs from the first, within the tolerance")


def vacuity(whole: Sequence[str], part: Sequence[str]) -> Remark | None:
    """Return whether an answer without the network would also have been right, in all outputs or in some."""
    word, what = ("vacuous", "") if whole else (PARTLY_VACUOUS, " of some outputs")
    return Remark(word, f"being right proves nothing{what}: {'; '.join(whole or part)}") if whole or part else None


def _vacuous(record: Record) -> Remark | None:
    remark = vacuity(record.vacuous, record.partly_vacuous) if record.outcome is Outcome.OK else None
    return remark._replace(why=f"{remark.why}; {VACUOUS_HINT}") if remark and record.vacuous else remark


def _unchecked(record: Record) -> Remark | None:
    """Return whether nobody outside TVM could say what is right."""
    if not record.unchecked:
        return None
    return Remark("unchecked", f"{record.judge} judged it, behind the same importer: {record.unchecked}")


def _llvm_off(record: Record) -> Remark | None:
    """Return whether TVM is wrong on LLVM where this path is right."""
    report = record.part(WitnessReport) if record.outcome is Outcome.OK else None
    if report is None or report.with_judge:
        return None
    return Remark("LLVM off", f"{report.name} gives another answer, which is wrong")


REMARKS: tuple[Callable[[Record], Remark | None], ...] = (
    _vacuous,
    _unchecked,
    _branches,
    lambda record: as_opencl(record.path, record.facts),
    _as_float32,
    _ties,
    _varies,
    _unsteady,
    _llvm_off,
)
"""All remarks, the gravest first."""
