"""What ends a command in one line: words that are wrong, and a module that is not installed."""

from __future__ import annotations

import shlex
import sys

import pytest

from harness import cli
from harness.cli.commands import how_to_install


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("plotly", "pip install 'adreno-bench[history]'"),
        ("jinja2", "pip install 'adreno-bench[history]'"),
        ("numpy", "pip install numpy"),
        ("tvm", "pip install adreno-bench"),  # its distribution has another name
    ],
)
def test_what_brings_a_module(module: str, command: str) -> None:
    assert how_to_install(module) == command


@pytest.mark.parametrize(
    ("module", "said"),
    [("plotly.offline", "plotly is not installed: pip install"), ("harness.gone", "a bug in adreno-bench")],
)
def test_a_missing_module_is_no_bug_unless_it_is_ours(
    module: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(*_: object, **_options: object) -> None:
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 4
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("run --livee", "there is no option --livee: did you mean '--live'?"),
        ("run --samples 3", "there is no option --samples: see `adreno-bench run -h`"),
        ("show --case x", "there is no option --case: write its value without --case"),
        ("-x", "there is no option -x: see `adreno-bench -h`"),
        ("shwo", "no such command 'shwo': did you mean 'show'?"),
        ("test", "no such command 'test': see `adreno-bench -h`"),
        ("history publsh", "no such command 'publsh': did you mean 'publish'?"),
        ("history nope", "no such command 'nope': see `adreno-bench history -h`"),
        ("run --records", "option '--records' requires an argument: see `adreno-bench run -h`"),
        ("inspect", "missing argument 'MODEL': see `adreno-bench inspect -h`"),
        ("list more", "got unexpected extra argument (more): see `adreno-bench list -h`"),
        (
            "init a.onnx b.onnx",
            "got unexpected extra argument (b.onnx): `adreno-bench init --model a.onnx --model b.onnx`",
        ),
        ("init a.onnx", "a.onnx is a model, and FILE is the suite to be written: pass --model a.onnx"),
        ("run net.onnx", "got unexpected extra argument (net.onnx): `adreno-bench run --model net.onnx`"),
        ("run 'my net.onnx'", "got unexpected extra argument (my net.onnx): `adreno-bench run --model 'my net.onnx'`"),
        (
            "run a.onnx b.onnx",
            "got unexpected extra argument (a.onnx b.onnx): `adreno-bench run --model a.onnx --model b.onnx`",
        ),
        ("ops net.pt2", "got unexpected extra argument (net.pt2): `adreno-bench inspect net.pt2`"),
        ("net.onnx", "no such command 'net.onnx': `adreno-bench run --model net.onnx`"),
        ("rnu", "no such command 'rnu': did you mean 'run'?"),
        (
            "run --precision float17",
            "invalid value for '--precision': 'float17' is not one of 'float32', 'float16', 'float16_acc32': "
            "see `adreno-bench run -h`",
        ),
        (
            "compare --a='--precision float17' --b='--precision float16'",
            "--a '--precision float17': invalid value for '--precision': 'float17' is not one of 'float32', 'float16', "
            "'float16_acc32': for example --a '--precision float16'",
        ),
        (
            "compare --a='\"' --b='--precision float16'",
            "--a '\"': No closing quotation: for example --a '--precision float16'",
        ),
    ],
)
def test_words_that_are_wrong_are_one_line_and_say_what_to_type(
    words: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["adreno-bench", *shlex.split(words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err) == (2, "", f"adreno-bench: {line}\n")


def test_a_group_without_a_command_prints_its_help_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["adreno-bench", "runtime"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert "Commands" in printed.out
    assert printed.err == ""
