"""`adreno-bench crossover`: which path is fastest for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from harness.base.tables import table
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordedCase, RecordsPlace, matches_globs
from harness.cli.record_filter import no_records, open_index
from harness.judge.report.screen import out, out_json

if TYPE_CHECKING:
    from harness.judge.path_ranking import PathRanking, Standing
    from harness.judge.stats.pair import Change


def crossover(
    case: RecordedCase = None,
    records: RecordsPlace = str(DEFAULT_RECORDS),
    as_json: AsJson = False,
) -> None:
    """Show which path is fastest for each model, and by how much.

    It compares all sessions of the latest build of each case.
    """
    from harness.judge.path_ranking import rank_paths

    with open_index(records) as index:
        builds = index.newest_builds(lambda name: matches_globs(name, [case] if case else None))
        sessions = [record for build in builds for record in build]
        if not sessions:
            raise no_records(case, records, index)
    ranked = rank_paths(sessions)
    if as_json:
        out_json([{**asdict(r), "lead": _plain_lead(r.lead), "conclusion": r.conclusion} for r in ranked])
    else:
        out(_text(ranked))


def _text(ranked: Sequence[PathRanking]) -> str:
    rows = [
        (
            r.model,
            r.precision,
            r.tuning,
            ", ".join([s.path, *s.remarks]),
            *_latency(s),
            "-" if s.mac_share is None else f"{s.mac_share:.0%}",
        )
        for r in ranked
        for s in r.standings
    ]
    conclusions = [f"{r.model} {r.precision} {r.tuning} on {r.identity_key}: {r.conclusion}" for r in ranked]
    headers = ("model", "precision", "tuning", "path", "wall ms", "sessions", "MACs offloaded")
    drawn = table(rows, headers, right=headers[4:], alike=("precision", "tuning"), spare=("MACs offloaded",))
    return "\n".join([drawn, "", *conclusions])


def _plain_lead(lead: Change | None) -> dict[str, float | None] | None:
    from harness.judge.stats.pair import finite

    if lead is None:
        return None
    return {name: finite(getattr(lead, name)) for name in ("relative", "low", "high", "sees")}


def _latency(standing: Standing) -> tuple[str, str]:
    from harness.judge.report.table import milliseconds

    if standing.wall_ms is None:
        return ("emulated" if standing.emulated else standing.outcome), "-"
    return milliseconds(standing.wall_ms), str(standing.sessions)
