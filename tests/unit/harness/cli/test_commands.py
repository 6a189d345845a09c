"""A module that is not installed is told as such, with the command that brings it."""

from __future__ import annotations

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
    def app(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 4
    assert said in " ".join(capsys.readouterr().err.split())
