"""What every command prints on a terminal of 80 columns, and as JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from history_results import IDENTITY as MACHINE
from places import ROOT
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text
from terminal_scene import BROKEN, CASES, set_the_scene, skip_without_packages, write_props
from typer.testing import CliRunner, Result

from harness.base import tables
from harness.cli import app, every_command
from harness.cli.commands import load_command
from harness.judge.report.screen import paint

WIDTH = 80
COMMANDS: dict[str, tuple[list[str], str]] = {
    "show": (["show"], "ok, unsteady"),
    "show --every": (["show", "--every"], "wrong-result"),
    "show of one case": (["show", BROKEN], "✗ wrong"),
    "show of one case in full": (["show", BROKEN, "--all"], "max_abs_err"),
    "crossover": (["crossover"], "could have been seen"),
    "partitions": (["partitions"], "may lose by offload"),
    "kernels": (["kernels", BROKEN], "not in the cache"),
    "inspect": (["inspect", "tiny"], "multiply-accumulates"),
    "list": (["list"], CASES[0]),
    "compare": (["compare", "records.jsonl", "slower.jsonl"], "slower"),
    "gate": (["gate", "--from", "slower.jsonl"], "slower"),
    "bless": (["bless"], "refused"),
    "records compact": (["records", "compact", "records.jsonl", "--out", "dataset"], "it has"),
    "devices": (["devices"], "unauthorized"),
    "cache": (["cache"], "2 entries"),
    "doctor": (["doctor"], "missing"),
    "history summary": (["history", "summary"], "since last release"),
    "run": (["run", "--resume"], "settled before and not run again"),
    "build": (["build"], "12.5 s"),
    "calibrate": (["calibrate"], "a change of"),
    "quirks": (["quirks"], "texture-store-broadcast"),
    "runtime list": (["runtime", "list"], "checked against"),
    "bisect": (
        ["bisect", "--good", "0.25.0.post1", "--bad", "0.27.0.post1", "--case", CASES[0]],
        "is the first that is slower",
    ),
}
"""What is typed, and a word that has to be in the answer."""

NOTES = " in every row: no room for: (a wider terminal, a pipe and --json have them)"


@pytest.fixture(scope="module")
def props(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("props")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ADRENO_BENCH_CACHE", str(folder / "cache"))
        write_props(folder)
    return folder


@pytest.fixture(autouse=True)
def _scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, props: Path) -> None:
    set_the_scene(tmp_path, monkeypatch, props)


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    skip_without_packages(name)
    return name


def invoke(words: Sequence[str]) -> Result:
    """What a command comes to. What it adds to records is taken away again, so that it does the same the next time."""
    before = {file: file.read_bytes() for file in Path().glob("*.jsonl")}
    done = CliRunner().invoke(app, words)
    for file, content in before.items():
        file.write_bytes(content)
    return done


def typed(words: Sequence[str]) -> str:
    done = invoke(words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stdout


def pieces(word: str) -> list[str]:
    """What lines may have of a word: all of it or, of the name of a case, what begins and ends at its hyphens."""
    parts = re.findall(r"[^-_]*[-_]|[^-_]+", word) if "-float" in word else [word]
    return ["".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)]


def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, marker = COMMANDS[command]
    whole = typed(arguments)
    monkeypatch.setattr(tables, "terminal_width", lambda *_: WIDTH)
    shown = typed(arguments)
    assert [line for line in shown.splitlines() if len(line) > WIDTH] == []
    assert marker in " ".join(shown.split())
    known = {piece.strip("-,") for word in (whole + NOTES).split() for piece in pieces(word)}
    assert [word for word in shown.split() if word.strip("-,") not in known] == []


def test_json_is_all_there_is_on_standard_output_and_the_exit_code_stays(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, _ = COMMANDS[command]
    monkeypatch.setattr(tables, "terminal_width", lambda *_: WIDTH)
    plain, programs = (invoke([*arguments, *more]) for more in ([], ["--json"]))
    told = json.loads(programs.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert isinstance(told, (list, dict))
    assert told
    assert programs.exit_code == plain.exit_code


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "93")
    assert tables.terminal_width() is None
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert tables.terminal_width() == 93


def test_the_history_is_of_the_machine_that_is_named() -> None:
    assert MACHINE.key in typed(["history", "summary"])


DOCS = ROOT / "docs"
PICTURES = {"show": ["show"], "gate": ["gate", "--from", "slower.jsonl"]}
WRITE_PICTURES = "ADRENO_BENCH_WRITE_PICTURES"
"""Set it to draw the pictures of docs/reference/records.md anew."""


def picture(title: str, text: str) -> str:
    """What a terminal of 80 columns shows, as SVG that fetches no font from elsewhere."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(paint(text)))
    frame = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return "\n".join(
        line.rstrip() for line in console.export_svg(title=title, code_format=frame, unique_id="t").split("\n")
    )


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_in_the_docs_are_what_a_terminal_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "terminal_width", lambda *_: WIDTH)
    words, file = PICTURES[name], DOCS / "images" / f"terminal-{name}.svg"
    drawn = picture(f"adreno-bench {' '.join(words)}", typed(words).rstrip())
    if os.environ.get(WRITE_PICTURES):
        file.write_text(drawn, encoding="utf-8")
    assert "https:" not in drawn.replace("https://www.textualize.io", "").replace("http://www.w3.org", "")
    assert file.read_text(encoding="utf-8") == drawn


def test_the_page_lists_every_command_that_prints_json() -> None:
    _, _, page = (DOCS / "reference/records.md").read_text(encoding="utf-8").partition("## JSON")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {word for row in rows for word in re.findall(r"`([a-z ]+)`", row.split("|")[1])}
    assert listed == {name for name, command in commands() if any("--json" in option.opts for option in command.params)}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by all of its words."""
    for listed in every_command():
        loaded = load_command(listed)
        inner = getattr(loaded, "commands", None)
        yield from ((f"{listed.name} {name}", one) for name, one in inner.items()) if inner else [(listed.name, loaded)]
