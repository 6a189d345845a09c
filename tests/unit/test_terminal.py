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
from fake_records import a_record, sessions
from history_results import IDENTITY as MACHINE
from history_results import Folder
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

from device_runner.device import DeviceEntry
from harness import tables
from harness.cli import COMMANDS as COMMANDS_OF_PROGRAM
from harness.cli import app
from harness.run.outcome import Outcome
from harness.run.record import Record

WIDTH = 80
CASES = [
    f"{model}-{path}-float32-untuned" for model in ("mobilenet_v1", "squeezenet1_1") for path in ("opencl", "texture")
]
BROKEN = "squeezenet1_1-clml-float16_acc32-tuned"
OFFLOAD = {
    "subgraphs": [
        {
            "symbol": "fused_relax_nn_conv2d_relax_add_relax_nn_relu_relax_nn_max_pool2d_0",
            "calls": 1,
            "operators": 12,
            "macs": 1.2e9,
            "boundary_bytes": 602112,
            "may_lose": True,
            "untunable": 1,
            "composites": {"openclml.conv2d_bias_relu": 26, "openclml.avg_pool2d": 1, "openclml.softmax": 1},
        }
    ],
    "operators_offloaded": 12,
    "operators": 14,
    "operator_share": 12 / 14,
    "macs_offloaded": 1.2e9,
    "macs": 1.3e9,
    "mac_share": 0.92,
    "boundary_bytes": 602112,
    "outside": [{"operator": "relax.nn.log_softmax", "count": 2, "macs": 0, "why": "CLML has no operator for it " * 4}],
}

COMMANDS: dict[str, tuple[list[str], str]] = {
    "show": (["show"], "ok, unsteady"),
    "show --every": (["show", "--every"], "wrong-result"),
    "show of one case": (["show", BROKEN], "max_abs_err"),
    "show --crossover": (["show", "--crossover"], "within the noise"),
    "show --partitions": (["show", "--partitions"], "may lose by offload"),
    "list": (["list"], CASES[-1]),
    "compare": (["compare", "records.jsonl", "slower.jsonl"], "slower"),
    "gate": (["gate", "--from", "slower.jsonl"], "slower"),
    "bless": (["bless"], "refused"),
    "devices": (["devices"], "unauthorized"),
    "cache": (["cache"], "1 entry"),
    "doctor": (["doctor"], "missing"),
    "history summary": (["history", "summary"], "since last release"),
}
"""What is typed, and a word that has to be in the answer."""

NOTES = " in every row: no room for: (a wider terminal, a pipe and --json have them)"


@pytest.fixture(autouse=True)
def _a_week_of_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, baselines, a cache and a history, with long names and long complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    Path("adreno-bench.toml").write_text('models = ["mobilenet_v1", "squeezenet1_1"]\npaths = ["opencl", "texture"]\n')
    good = [one for case in CASES for one in sessions(10, case=case, device_ms=[9.0] * 3, library_bytes=17_900_000)]
    restless = a_record(CASES[0], wall_ms=[2.0, 4.5, 10.0, 15.5, 17.0] * 2, device_ms=[9.0] * 3)
    wrong = a_record(
        BROKEN, outcome=Outcome.WRONG_RESULT, offload=OFFLOAD, message="output 0 is off by 3 in its element 17 " * 5
    )
    write("records.jsonl", [*good, restless, wrong])
    write("slower.jsonl", [one for case in CASES for one in sessions(13, seed=1, case=case, artifact="b" * 24)])
    CliRunner().invoke(app, ["bless"])
    artifact = tmp_path / "cache" / "artifacts" / ("a" * 24)
    artifact.mkdir(parents=True)
    (artifact / "title").write_text(f"{CASES[-1]}\n")
    folder = Folder(tmp_path / "results")
    for quick in (1.0, 2.0):
        folder.commit({(case, "none"): 1000.0 * quick for case in CASES})
    Path("asv.conf.json").write_text(json.dumps({"version": 1, "project": "p", "repo": ".", "results_dir": "results"}))
    entries = [
        DeviceEntry("virtual", "virtual", "ready", {"gpu": "pthread-skylake-avx512-AMD EPYC"}),
        DeviceEntry("R5CT30ABCDE", "phone", "unauthorized", {"hint": "allow USB debugging on its screen " * 3}),
    ]
    monkeypatch.setattr("device_runner.registry.list_devices", lambda _cache: entries)
    monkeypatch.setattr("harness.doctor.machine.examine", lambda _cache: _findings())


def _findings() -> list[Any]:
    from harness.doctor.finding import Condition, Finding

    return [
        Finding("compiler", Condition.OK, "apache-tvm 0.27.0.post1 and apache-tvm-ffi 0.1.14.post1 work together " * 2),
        Finding("OpenCL", Condition.MISSING, "no platform answers", "sudo apt-get install pocl-opencl-icd " * 3),
    ]


def write(name: str, records: Sequence[Record]) -> None:
    Path(name).write_text("".join(record.line() + "\n" for record in records))


def typed(words: Sequence[str]) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, marker = COMMANDS[command]
    whole = typed(arguments)
    monkeypatch.setattr(tables, "terminal_width", lambda *_: WIDTH)
    shown = typed(arguments)
    assert [line for line in shown.splitlines() if len(line) > WIDTH] == []
    assert marker in " ".join(shown.split())
    known = {word.strip("-,") for word in (whole + NOTES).split()}
    assert [word for word in shown.split() if word.strip("-,") not in known] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_all_there_is_on_standard_output(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, _ = COMMANDS[command]
    monkeypatch.setattr(tables, "terminal_width", lambda *_: WIDTH)
    told = json.loads(typed([*arguments, "--json"]), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert isinstance(told, (list, dict))
    assert told


@pytest.mark.parametrize("command", COMMANDS)
def test_json_leaves_the_exit_code_as_it_is(command: str) -> None:
    arguments, _ = COMMANDS[command]
    codes = [CliRunner().invoke(app, [*arguments, *more]).exit_code for more in ([], ["--json"])]
    assert codes[0] == codes[1]


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "93")
    assert tables.terminal_width() is None
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert tables.terminal_width() == 93


def test_the_history_is_of_the_machine_that_is_named() -> None:
    assert MACHINE.key in typed(["history", "summary"])


DOCS = Path(__file__).parents[2] / "docs"
PICTURES = {"show": ["show"], "gate": ["gate", "--from", "slower.jsonl"]}
WRITE_PICTURES = "ADRENO_BENCH_WRITE_PICTURES"
"""Set it to draw the pictures of docs/terminal.md anew."""


def picture(title: str, text: str) -> str:
    """What a terminal of 80 columns shows, as SVG that fetches no font from elsewhere."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system=None)
    console.print(Text(text))
    frame = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return "\n".join(
        line.rstrip() for line in console.export_svg(title=title, code_format=frame, unique_id="t").split("\n")
    )


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_in_the_docs_are_what_a_terminal_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "terminal_width", lambda *_: WIDTH)
    words, file = PICTURES[name], DOCS / f"terminal-{name}.svg"
    drawn = picture(f"adreno-bench {' '.join(words)}", typed(words).rstrip())
    if os.environ.get(WRITE_PICTURES):
        file.write_text(drawn, encoding="utf-8")
    assert "https:" not in drawn.replace("https://www.textualize.io", "").replace("http://www.w3.org", "")
    assert file.read_text(encoding="utf-8") == drawn


def test_the_page_lists_every_command_that_prints_json() -> None:
    page = (DOCS / "terminal.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {word for row in rows for word in re.findall(r"`([a-z ]+)`", row.split("|")[1])}
    assert listed == {name for name, command in commands() if any("--json" in option.opts for option in command.params)}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by all of its words."""
    for listed in COMMANDS_OF_PROGRAM:
        loaded = listed.load()
        inner = getattr(loaded, "commands", None)
        yield from ((f"{listed.name} {name}", one) for name, one in inner.items()) if inner else [(listed.name, loaded)]
