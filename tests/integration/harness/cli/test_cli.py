"""Packages that the command line loads, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import every_command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[4] / "pyproject.toml"
HEAVY = (
    *("tvm", "tvm_ffi", "onnx", "numpy", "adbutils", "rich", "pydantic"),
    *("fsspec", "distributed", "duckdb", "pyarrow"),
)


def test_the_command_line_loads_no_heavy_package() -> None:
    load = "import sys; from harness import cli; loaded = [cli.commands.load_command(c) for c in cli.every_command()]"
    script = f"{load}; print([name for name in {HEAVY} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def help_and_modules(*arguments: str) -> tuple[list[str], set[str]]:
    """The commands that a help lists, and the modules that were loaded for it."""
    script = (
        "import sys\nfrom harness.cli import main\ntry: main()\n"
        "except SystemExit: print('loaded', *(name for name in sys.modules if name), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments, "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        check=True,
    )
    rows = [line.split()[0] for line in done.stdout.splitlines() if re.match(r"  [a-z]+ {2,}", line)]
    return rows, set(done.stderr.partition("loaded ")[2].split())


@pytest.mark.parametrize("called", ["", "history", "list"])
def test_help_imports_the_command_that_is_called_and_no_other(called: str) -> None:
    rows, loaded = help_and_modules(*called.split())
    modules = {each.name: each.place.partition(":")[0] or f"harness.cli.{each.name}" for each in every_command()}
    assert loaded & {*modules.values()} == {modules[called] for called in called.split()}
    needed_by_typer = {"rich", "pydantic"} if called else set()  # to draw the help, and to read options
    assert not loaded & ({*HEAVY} - needed_by_typer)
    if not called:
        assert rows == [command.name for command in every_command()]


@pytest.mark.parametrize("loading", ["harness.cli", "typer", "typer._click.core", "harness.base.tool"])
def test_ctrl_c_while_modules_are_loaded_ends_quietly(loading: str) -> None:
    module, _, function = tomllib.loads(PROJECT.read_text())["project"]["scripts"]["adreno-bench"].partition(":")
    finder = f"""
import os, signal, sys
class Finder:
    def find_spec(name, *_):
        if name == {loading!r}: os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
from {module} import {function}
{function}()
"""
    done = subprocess.run([sys.executable, "-c", finder, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


@pytest.mark.parametrize(("started", "code"), [(signal.SIG_DFL, 128 + signal.SIGHUP), (signal.SIG_IGN, 0)])
def test_a_closed_terminal_ends_a_command_unless_nohup_started_it(started: signal.Handlers, code: int) -> None:
    """`nohup` ignores SIGHUP for what it starts."""
    script = f"""
import os, signal
signal.signal(signal.SIGHUP, signal.{started.name})
from harness import cli
cli.app = lambda *_, **__: os.kill(os.getpid(), signal.SIGHUP) or 0
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_press_of_tab_loads_neither_tvm_nor_adb_and_says_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    typed = "adreno-bench run --case tiny-o"
    asked = {"_ADRENO_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": "3"}
    loaded = f"print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)"
    script = f"import sys; sys.argv[0] = 'adreno-bench'\nfrom harness.cli import main\ntry: main()\nfinally: {loaded}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **asked},
        check=True,
    )
    assert done.stdout.split() == ["tiny-opencl-float32-untuned"]
    assert {*done.stderr.split()} <= {"pydantic", "rich"}
