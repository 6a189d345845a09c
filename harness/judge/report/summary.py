"""The newest state as text: for a terminal, or as Markdown for a job's summary and a pull request's comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from harness.base.tables import markdown_table, table
from harness.judge.history.events import (
    WORST_FIRST,
    Event,
    change,
    change_bounds,
    events,
    is_news,
    short_series,
    too_short_text,
    vanished_series,
)
from harness.judge.history.results import History, Series
from harness.judge.history.section import HistorySection
from harness.judge.report import words

MOST_ROWS = 200


def lines(history: History, *, markdown: bool, sections: Sequence[HistorySection] = ()) -> Iterator[str]:
    """Yield the report, line by line."""
    if not history.series:
        yield "Nothing was measured."
    for machine in sorted(history.commits):
        if any(series.machine == machine for series in history.series):
            yield from _machine(history, machine, markdown, sections)
    for section in sections:
        yield from _section(section, markdown)
    for problem in history.skipped:
        yield f"- could not be read: {_plain(problem)}"


def _section(section: HistorySection, markdown: bool) -> Iterator[str]:
    """Yield what changed lately by a tool's notes, and its last sentence."""
    for note in section.notes:
        if note.moved:
            what = _bold(note.moved.value, markdown)
            yield f"- {what} {note.subject} ({note.machine}): {_plain(note.change)}"
    if section.closing:
        yield section.closing
        yield ""


def facts(history: History, sections: Sequence[HistorySection] = ()) -> dict[str, Any]:
    """Return the summary for programs. Latencies in ms; what is not known is null."""
    return {
        "machines": [
            {
                "machine": machine,
                "commit": history.commits[machine][-1],
                "cases": [_case(series) for series in history.at_newest(machine)],
                "moved": [_event(event) for event in _news(history, machine)],
                "vanished": [_which(series) for series in vanished_series(history) if series.machine == machine],
                "too_short": [_which(series) for series in short_series(history) if series.machine == machine],
            }
            for machine in sorted(history.commits)
        ],
        **{section.name: [dict(note.facts) for note in section.notes] for section in sections if section.name},
        "skipped": history.skipped,
    }


def _news(history: History, machine: str) -> list[Event]:
    return [e for e in events(history) if e.series.machine == machine and is_news(e, history)]


def _which(series: Series) -> dict[str, Any]:
    return {"case": series.case.id, "quirks": series.quirks}


def _case(series: Series) -> dict[str, Any]:
    point = series.newest
    state = {"state": point.state.value, "wall_ms": point.wall_ms, "message": point.message}
    return {**_which(series), **state, "change_since_last_release": change(series)}


def _event(event: Event) -> dict[str, Any]:
    step = event.step
    before_ms, after_ms = (step.before_ms, step.after_ms) if step else (event.before.wall_ms, event.after.wall_ms)
    numbers = {"verdict": event.verdict.value, "before_ms": before_ms, "after_ms": after_ms}
    places = {"since": event.before.commit, "at": event.after.commit, "message": event.after.message}
    sure = {"low": step.low, "high": step.high, "p": step.p, "confirm": words.confirmation(event)} if step else {}
    sure |= {"in_turns": to_builtins(event.decided)} if step else {}
    return {**_which(event.series), **numbers, **places, **sure}


def _machine(history: History, machine: str, markdown: bool, sections: Sequence[HistorySection]) -> Iterator[str]:
    newest, here = history.commits[machine][-1], history.at_newest(machine)
    counts = Counter(series.newest.state.value for series in here)
    label = words.commit_text(here[0].newest) if here else newest[: words.HASH_LENGTH]
    yield f"{'## ' if markdown else ''}{machine} at {label}"
    yield ""
    if emulated := history.machines.get(machine, {}).get("emulated"):
        yield f"Not a phone. Not the real thing here: {emulated}. Never compare its times with a phone's."
        yield ""
    yield ", ".join(f"{count} {name}" for name, count in counts.items()) + "."
    moved = _news(history, machine)
    gone = [series for series in vanished_series(history) if series.machine == machine]
    for verdict in WORST_FIRST:
        for event in (e for e in moved if e.verdict is verdict):
            before, after = words.numbers(event)
            where = f"since {words.commit_text(event.after)}"
            what = _bold(verdict.value, markdown)
            text = words.step_text(event) or event.after.message
            yield f"- {what} {_name(event.series)}: {before} → {after}, {where}. {_plain(text)}"
            yield from (f"  {_plain(remark)}" for section in sections if (remark := section.remark(event)))
            if command := words.confirmation(event):
                yield f"  confirm it: {command}"
    for series in gone:
        yield f"- {_bold('vanished', markdown)} {_name(series)}: last seen at {words.commit_text(series.newest)}"
    if text := too_short_text([series for series in short_series(history) if series.machine == machine]):
        yield f"- {text}"
    yield ""
    rows = [
        (
            series.case.id,
            words.quirks_text(series),
            words.state_text(series.newest),
            words.latency(series.newest.wall_ms),
            words.percent(change(series)) + words.interval(change_bounds(series)),
        )
        for series in here[:MOST_ROWS]
    ]
    heads = ("case", "quirks", "state", "latency", "since last release")
    drawn = markdown_table(rows, heads) if markdown else table(rows, heads, alike=("quirks",))
    yield from drawn.splitlines()
    if any(change(series) is not None for series in here):
        yield ""
        yield words.SINCE_RELEASE
    if len(here) > MOST_ROWS:
        yield f"{len(here) - MOST_ROWS} more."
    yield ""


def _name(series: Series) -> str:
    return f"{series.case.id} ({words.quirks_text(series)})"


def _bold(word: str, markdown: bool) -> str:
    return f"**{word}**" if markdown else word


def _plain(text: str) -> str:
    """Return a text on one line, with the signs of Markdown replaced."""
    return " ".join(text.split()).replace("|", "/").replace("`", "'").replace("<", "&lt;")
