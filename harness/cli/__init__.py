"""The command line. One file per command, each thin, and imported when the command is called."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from device_runner.disk import disk_full
from device_runner.failures import Failure
from device_runner.interrupt import end_at, raise_if_interrupted
from harness.base.outcome import ExitCode
from harness.base.terminal import OUTPUT, ReaderGone, TerminalLog, forget, open_missing_streams, plain, tell, write
from harness.base.tool import Command, tools
from harness.cli.commands import HELP_NAMES, GroupedCommands, add_commands, how_to_install, usage_hint, usage_line

DEBUG_VARIABLE = "ADRENO_BENCH_DEBUG"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

GROUPS = ("Measure", "Judge", "Explain", "Devices", "Set up")
"""Headings of `--help`, in this order."""
MAIN_JOB = (
    Command("run", "Compile, judge and time every case of the suite, on one device or several.", "Measure"),
    Command("build", "Compile the cases and show what the compiler made of them.", "Measure"),
    Command(
        "gate",
        "Run the suite and compare it with its baselines: exit 3 if a case is wrong or broken, 1 if it is slower.",
        "Judge",
    ),
    Command("bless", "Save the latest right results as baselines.", "Judge"),
    Command("history", "Measure commits and releases with asv, and publish what moved.", "Judge"),
    Command("show", "Show the latest record of each case, or a summary of one case.", "Explain"),
    Command("report", "Write one HTML page of a run, a gate or a comparison.", "Explain"),
    Command("list", "List the cases of the suite.", "Set up", "harness.cli.list_cases:list_cases"),
)


def every_command() -> list[Command]:
    """Return the commands of the main job and of every tool, group by group."""
    every = [*MAIN_JOB, *(command for tool in tools() for command in tool.commands)]
    return sorted(every, key=lambda command: GROUPS.index(command.group))


PROGRAM = "adreno-bench"
app = typer.Typer(
    name=PROGRAM,
    help="Find which models got slower, wrong or broken on Apache TVM's compilation paths to Qualcomm Adreno GPUs.",
    epilog="Start with `adreno-bench doctor`, then `adreno-bench run --model net.onnx`. Exit codes: 0 all good, "
    "1 slower, 2 usage, 3 wrong or broken, 4 rig failure, 5 nothing was measured, 6 undecided.",
    cls=GroupedCommands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP_NAMES, "max_content_width": 120},
)

_LOG = TerminalLog()
_OURS = ("harness", "device_runner")
"""Packages of ours: if a module of these is missing, pip cannot help."""

_PARSER = ("typer", "rich")


def _print_version(asked: bool) -> None:
    if asked:
        from harness.compile.compiler.releases import harness_version, versions

        installed = versions()
        write(f"adreno-bench {harness_version()}")
        write(f"apache-tvm {installed['tvm']}, apache-tvm-ffi {installed['ffi']}")
        raise typer.Exit


@app.callback(help=app.info.help, epilog=app.info.epilog)
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the versions of adreno-bench and TVM."
        ),
    ] = False,
) -> None:
    """Run the program; its commands do the work."""


def main() -> None:
    """Run a command. Every error ends as one line with what to do next."""
    open_missing_streams()
    logging.getLogger().addHandler(_LOG)  # which is added once, however often this is called
    under_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with end_at(*_STOPS[: -1 if under_nohup else None]):
        _call()


def _call() -> None:
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except TyperException as error:
        if not error.format_message():  # a group without a command, whose help is printed already
            sys.exit(ExitCode.USAGE)
        _end(": ".join(filter(None, (usage_line(error), usage_hint(error, sys.argv[1:])))), ExitCode.USAGE)
    except Failure as failure:
        _end(str(failure), ExitCode.USAGE if failure.outcome == "usage" else ExitCode.RIG_FAILURE)
    except (ReaderGone, BrokenPipeError):
        sys.exit(ExitCode.GOOD)
    except OSError as error:
        from device_runner.store import cache_root

        if _while_printing(error):
            forget(sys.stdout)
            _end(f"cannot write {OUTPUT}: {error.strerror}: redirect it to a place with room", ExitCode.RIG_FAILURE)
        if full := disk_full(error, cache_root(), Path.cwd(), otherwise="or use another disk (ADRENO_BENCH_CACHE)"):
            _end(str(full), ExitCode.RIG_FAILURE)
        advice = ", set ADRENO_BENCH_CACHE to one" if _in_cache(error, cache_root()) else ""
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _end(f"{what}: name a file or folder of yours{advice}, or check the disk", ExitCode.RIG_FAILURE)
    except Exception as error:
        module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if module and module not in _OURS:
            _end(f"{module} is not installed: {how_to_install(module)}", ExitCode.RIG_FAILURE)
        hint = f"a bug in adreno-bench; set {DEBUG_VARIABLE}=1 for the traceback and report it"
        _end(f"{type(error).__name__}: {error}: {hint}", ExitCode.RIG_FAILURE)
    sys.exit(code if isinstance(code, int) else ExitCode.GOOD)


def _while_printing(error: OSError) -> bool:
    """Return whether standard output took no more: ours names it, and the parser prints help by itself."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return error.filename == OUTPUT or frame.f_globals["__name__"].partition(".")[0] in _PARSER


def _in_cache(error: OSError, cache: Path) -> bool:
    """Return whether what failed was the cache, or making a folder above it."""
    failed = Path(error.filename) if isinstance(error.filename, str) else None
    return failed is not None and (failed.is_relative_to(cache) or cache.is_relative_to(failed))


def _end(line: str, code: ExitCode) -> NoReturn:
    from harness.base.tables import folded

    raise_if_interrupted()  # what failed on the way out is of no use after Ctrl-C
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    with suppress(OSError, ReaderGone):  # the code says it where nobody reads or nothing more fits
        tell(folded(f"adreno-bench: {plain(' '.join(line.split()))}", sys.stderr))
    sys.exit(code)


try:
    add_commands(app, every_command())
except Failure as failure:  # a tool of the environment that is not there
    _end(str(failure), ExitCode.USAGE)
