"""The command line, as far as no device is needed."""

import importlib.metadata
import inspect
import json
import logging
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._completion_classes import BashComplete
from typer.main import get_command

from device_runner.device import DeviceEntry
from device_runner.failures import DeviceLost
from harness.base.outcome import ExitCode
from harness.base.suite import Suite, choose
from harness.base.tool import Command
from harness.cli import app, every_command, main
from harness.cli.commands import load_command

COMMANDS = (
    *("run", "calibrate", "compare", "bisect", "bless", "gate", "build", "isa", "show", "ops", "profile", "reduce"),
    *("pack", "ingest", "records", "report", "diverge", "kernels", "crossover", "partitions", "sustained"),
    *(
        "init",
        "list",
        "devices",
        "doctor",
        "quirks",
        "cache",
        "history",
        "fleet",
        "runtime",
        "inspect",
        "tune",
        "llm",
        "github",
    ),
)


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


Bench = Callable[..., Done]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """The whole program, from `main` to its exit code, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["adreno-bench", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return Done(ended.value.code or 0, *capsys.readouterr())

    return run


def test_help_names_every_command(bench: Bench) -> None:
    said = bench("--help").stdout
    assert all(f" {command} " in said for command in COMMANDS)


def test_what_is_logged_is_printed_once_after_several_commands(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        bench("--version")
    logging.getLogger("tvm").warning("the schedule has no target")
    assert capsys.readouterr().err == "the schedule has no target\n"


@pytest.mark.parametrize("command", every_command(), ids=lambda command: command.name)
def test_the_list_says_of_a_command_the_first_sentence_of_its_help(command: Command) -> None:
    loaded = load_command(command)
    paragraph = " ".join(inspect.cleandoc(loaded.help or "").partition("\n\n")[0].split())
    assert re.split(r"(?<=\.) ", paragraph)[0] == command.help


def test_the_table_has_every_command() -> None:
    assert sorted(command.name for command in every_command()) == sorted(COMMANDS)


def test_without_arguments_the_program_shows_its_help(bench: Bench) -> None:
    assert bench().stdout == bench("--help").stdout != ""


@pytest.mark.parametrize("words", ["-h", "--help", ""])
def test_a_group_shows_its_commands_without_arguments_too(bench: Bench, words: str) -> None:
    assert " publish " in bench("history", *words.split()).stdout


@pytest.mark.parametrize(
    ("arguments", "nearest"), [(["gat"], "gate"), (["cach"], "cache"), (["history", "pubish"], "publish")]
)
def test_a_mistyped_command_is_told_the_nearest_one(bench: Bench, arguments: list[str], nearest: str) -> None:
    done = bench(*arguments)
    assert f"no such command '{arguments[-1]}': did you mean '{nearest}'" in done.stderr
    assert done.returncode == ExitCode.USAGE


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("adreno-bench b", ["build", "bless", "bisect"]),
        ("adreno-bench gate --base", ["--baselines"]),
        ("adreno-bench history pu", ["publish"]),
    ],
)
def test_the_shell_completes_commands_and_their_options(typed: str, completed: list[str]) -> None:
    assert completions(typed) == completed


def completions(typed: str) -> list[str]:
    """What the shell offers for the last word."""
    program, *words, last = typed.split(" ")
    return [item.value for item in BashComplete(get_command(app), {}, program, "").get_completions(words, last)]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("adreno-bench run --case tiny-o", ["tiny-opencl-float32-untuned"]),
        ("adreno-bench run --suite other.toml --case ", ["mine-texture-float32-untuned", "mine-*", "*-texture-*"]),
        ("adreno-bench run --suite broken.toml --case ", []),
        ("adreno-bench show ti", ["tiny-clml-float32-untuned"]),
        ("adreno-bench show --records gone.jsonl ", []),
        ("adreno-bench gate --device ", ["virtual", "local", "all", "R5CT30"]),
        ("adreno-bench init --model t", ["tiny"]),
        ("adreno-bench init --path ", ["clml", "opencl", "texture"]),
        ("adreno-bench run --with-quirk texture-st", ["texture-store-broadcast"]),
    ],
)
def test_the_shell_offers_what_there_is_from_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, completed: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    (tmp_path / "other.toml").write_text('models = ["mine.onnx"]\npaths = ["texture"]\n')
    (tmp_path / "broken.toml").write_text("models = ")
    (tmp_path / "records.jsonl").write_text('{"schema":2,"case":"tiny-clml-float32-untuned"')
    (tmp_path / "cache" / "identities").mkdir(parents=True)
    (tmp_path / "cache" / "identities" / "R5CT30.json").touch()
    assert completions(typed) == completed


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(bench: Bench, command: str) -> None:
    done = bench(command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def _options(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """Yield every option of a command and its commands, and what its help writes for the value."""
    for word, inner in getattr(command, "commands", {}).items():
        yield from _options(f"{name} {word}", inner)
    with typer.Context(command) as context:
        for parameter in command.get_params(context):
            yield f"{name} {parameter.opts[0]}", parameter.display_type_rich(context) or ""


def test_the_help_of_a_command_writes_no_type_of_python() -> None:
    words = dict(pair for command in every_command() for pair in _options(command.name, load_command(command)))
    choices = re.compile(r"<[\w.-]+(\|[\w.-]+)+>")
    assert {name: word for name, word in words.items() if re.search(r"[<\[]", choices.sub("", word))} == {}
    assert words["run --resume"] == ""
    assert words["run --device"] == "DEVICE"
    assert words["run --suite"] == "FILE"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["list"],
            "adreno-bench: there is no suite file adreno-bench.toml: `adreno-bench init` writes one, or name a network "
            "with --model",
        ),
        (["list", "--suite", "s.toml", "--case", "tny-*"], "no case matches 'tny-*': did you mean 'tiny-*'?"),
        (["run", "--suite", "s.toml", "--device", "virtul"], "did you mean 'virtual'"),
        (["run", "--suite", "path.toml"], "there is no path 'textur': did you mean 'texture'?"),
        (["run", "--suite", "model.toml"], "there is no model 'resnet8': did you mean 'resnet18'?"),
        (["run", "--suite", "own.toml", "--model", "face"], "there is no model 'face': did you mean 'faces'?"),
        (["run", "--suite", "own.toml", "--model", "rings"], "the suite has faces, hands, and the zoo has mobilen"),
        (["run", "--suite", "file.toml"], "gone.onnx does not exist"),
        (["run", "--suite", "bad.toml"], "bad.toml:1: unknown key 'model'"),
        (["show"], "there are no records in records.jsonl: `adreno-bench run` makes some"),
        (["cache", "--all"], "--all, --unused-days and --device go with --prune"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    bench: Bench, tmp_path: Path, arguments: list[str], message: str
) -> None:
    suites = {
        "s.toml": 'models = ["tiny"]\npaths = ["opencl"]\n',
        "path.toml": 'models = ["tiny"]\npaths = ["textur"]\n',
        "model.toml": 'models = ["resnet8"]\npaths = ["opencl"]\n',
        "own.toml": 'models = ["tiny", { onnx = "f.onnx", name = "faces" }, "hands.onnx"]\npaths = ["opencl"]\n',
        "file.toml": 'models = ["gone.onnx"]\npaths = ["opencl"]\n',
        "bad.toml": 'model = ["tiny"]\npaths = ["opencl"]\n',
    }
    for name, text in suites.items():
        (tmp_path / name).write_text(text)
    done = bench(*arguments)
    assert message in done.stderr
    assert done.returncode == ExitCode.USAGE
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "build", "gate", "calibrate"])
def test_sources_that_are_not_installed_are_refused_before_anything_is_built(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    known = importlib.metadata.version

    def version(package: str) -> str:
        if package == "adreno-bench":
            raise importlib.metadata.PackageNotFoundError(package)
        return known(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    (tmp_path / "s.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    done = bench(command, "--suite", "s.toml")
    (line,) = done.stderr.splitlines()
    assert "adreno-bench is not installed: only its sources" in line
    assert "pip install --no-deps -e" in line
    assert done.returncode == ExitCode.RIG_FAILURE
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("globs", "cases"),
    [
        (["tiny-*"], ["tiny-opencl-float32-untuned", "tiny-clml-float32-untuned"]),
        (["*-clml-*-tuned"], ["tiny-clml-float32-tuned"]),
        (
            ["*-clml-float16*"],
            [f"tiny-clml-{p}-{t}" for p in ("float16", "float16_acc32") for t in ("untuned", "tuned")],
        ),
        (["*-clml-float32-tuned", "*-opencl-*"], ["tiny-opencl-float32-untuned", "tiny-clml-float32-tuned"]),
    ],
)
def test_a_glob_means_the_suites_cases_or_else_what_the_suite_could_have(globs: list[str], cases: list[str]) -> None:
    suite = Suite(models=["tiny"], paths=["opencl", "clml"])
    assert [case.id for case in choose(suite, globs)] == cases


@pytest.mark.parametrize(
    ("options", "cases"),
    [
        ("--path clml", ["tiny-clml-float32-untuned"]),
        ("--precision float16 --path texture", ["tiny-texture-float16-untuned"]),
        ("--tuning tuned", ["tiny-opencl-float32-tuned", "tiny-texture-float32-tuned"]),
        ("--case *-texture-* --tuning tuned", ["tiny-texture-float32-tuned"]),
        ("--case *-clml-*", ["tiny-clml-float32-untuned"]),
    ],
)
def test_paths_precisions_and_tunings_stand_in_place_of_the_suites(
    bench: Bench, tmp_path: Path, options: str, cases: list[str]
) -> None:
    (tmp_path / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl", "texture"]\n')
    assert json.loads(bench("list", "--json", *options.split()).stdout) == cases


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--path textur", "there is no path 'textur': did you mean 'texture'?"),
        ("--tuning scheduled", "such cases come from a file: pass --schedules FILE"),
        ("--path clml --case *-opencl-*", "no case of the chosen path, precision and tuning matches '*-opencl-*'"),
    ],
)
def test_an_axis_that_nothing_is_on_is_one_line(bench: Bench, tmp_path: Path, options: str, complaint: str) -> None:
    (tmp_path / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    done = bench("list", *options.split())
    assert done.returncode == ExitCode.USAGE
    assert complaint in " ".join(done.stderr.split())


def test_the_cases_of_a_suite_as_json(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('models = ["tiny"]\npaths = ["opencl", "texture"]\n')
    said = bench("list", "--suite", "s.toml", "--json").stdout
    assert json.loads(said) == ["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]


def test_restoring_goes_on_where_one_device_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def put_back(name: str, _cache: Path) -> dict[str, str]:
        if name == "gone":
            raise DeviceLost("gone does not answer")
        return {"screen": "as it was"}

    entries = [DeviceEntry(name, "phone", "ready") for name in ("gone", "here")]
    monkeypatch.setattr("harness.tools.fleet.devices_command.list_devices", lambda _cache: entries)
    monkeypatch.setattr("harness.tools.fleet.devices_command.put_back", put_back)
    monkeypatch.setattr(sys, "argv", ["adreno-bench", "devices", "--restore"])
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before
    assert ended.value.code == ExitCode.RIG_FAILURE
    assert "gone does not answer" in said
    assert "as it was" in said


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--device", "virtual", "--device", "local"], 2, "virtual and local compute on the same cores of this host"),
        (["--device", "virtual", "--device", "R5CT"], 2, "there is no device 'R5CT'"),
        (["--tracker", "nowhere"], 2, "'nowhere' is not HOST:PORT"),
        (["--tracker", "127.0.0.1:1"], 4, "the TVM RPC tracker at 127.0.0.1:1 does not answer"),
    ],
)
def test_a_device_that_cannot_be_meant_or_reached_is_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, line: str
) -> None:
    monkeypatch.setattr("device_runner.transport.adb_server.known_devices", list)
    Path("adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    done = bench("run", *arguments)
    assert done.returncode == code
    assert done.stderr.strip().splitlines()[-1].startswith(f"adreno-bench: {line}")
