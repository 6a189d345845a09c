"""The newest state as text: for a terminal, or as Markdown for a job's summary and a pull request's comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from harness.history.events import WORST_FIRST, change, events, state_of, vanished
from harness.history.results import History, Series
from harness.report import words

MOST_ROWS = 200


def lines(history: History, *, markdown: bool) -> Iterator[str]:
    """The report, line by line."""
    if not history.series:
        yield "Nothing was measured."
    for machine in sorted(history.commits):
        series = [one for one in history.series if one.machine == machine]
        if series:
            yield from _machine(history, machine, series, markdown)
    for problem in history.skipped:
        yield f"- could not be read: {_plain(problem)}"


def _machine(history: History, machine: str, series: Sequence[Series], markdown: bool) -> Iterator[str]:
    newest = history.commits[machine][-1]
    here = [one for one in series if one.newest.commit == newest]
    counts = Counter(state_of(one.newest).value for one in here)
    label = words.commit_text(here[0].newest) if here else newest[: words.HASH_LENGTH]
    yield f"{'## ' if markdown else ''}{machine} at {label}"
    yield ""
    yield ", ".join(f"{count} {name}" for name, count in counts.items()) + "."
    moved = [e for e in events(history) if e.series.machine == machine and e.after.commit == newest]
    gone = [one for one in vanished(history) if one.machine == machine]
    for verdict in WORST_FIRST:
        for event in (e for e in moved if e.verdict is verdict):
            before, after = words.numbers(event)
            where = f"since {words.commit_text(event.before)}"
            what = _bold(verdict.value, markdown)
            yield f"- {what} {_name(event.series)}: {before} → {after}, {where}. {_plain(event.after.message)}"
    for one in gone:
        yield f"- {_bold('vanished', markdown)} {_name(one)}: last seen at {_last_seen(one)}"
    yield ""
    rows = [
        (
            one.case.id,
            words.quirks_text(one),
            words.state_text(one.newest),
            words.latency(one.newest.wall_ms),
            _change(one),
        )
        for one in here[:MOST_ROWS]
    ]
    heads = ("case", "quirks", "state", "latency", "since last release")
    yield from tabulate(rows, heads, tablefmt="github" if markdown else "simple", disable_numparse=True).splitlines()
    if len(here) > MOST_ROWS:
        yield f"{len(here) - MOST_ROWS} more."
    yield ""


def _name(series: Series) -> str:
    return f"{series.case.id} ({words.quirks_text(series)})"


def _change(series: Series) -> str:
    return words.percent(change(series))


def _last_seen(series: Series) -> str:
    return words.commit_text(series.newest)


def _bold(word: str, markdown: bool) -> str:
    return f"**{word}**" if markdown else word


def _plain(text: str) -> str:
    """One line in which Markdown finds nothing to do."""
    return " ".join(text.split()).replace("|", "/").replace("`", "'").replace("<", "&lt;")
