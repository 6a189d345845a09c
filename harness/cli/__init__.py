"""The command line. One file per command, each thin, and imported when the command is called."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from device_runner.disk import disk_full
from device_runner.failures import Failure
from device_runner.interrupt import end_at, raise_if_interrupted
from harness.cli.commands import Command, add_commands
from harness.run.outcome import ExitCode

DEBUG_VARIABLE = "ADRENO_BENCH_DEBUG"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

COMMANDS = (
    Command("run", "Run the suite on one device or on several at once, and end with a table."),
    Command(
        "calibrate",
        "Run each case's artifact against itself in fresh sessions, and learn the smallest change that can be seen.",
    ),
    Command(
        "compare",
        "Say what became of each case between BASE and HEAD: wrong, broken, slower, faster, fixed or the same.",
    ),
    Command("bisect", "Find the first release, or the first commit, with which a case is wrong, broken or slower."),
    Command("bless", "Write the latest build of each case into the baselines, to be reviewed as a diff."),
    Command(
        "gate",
        "Run the suite and compare it with its baselines: exit 3 if a case is wrong or broken, 1 if it is slower.",
    ),
    Command("build", "Compile the cases for a device and show what the compiler made of them."),
    Command(
        "isa",
        "Compile the kernels of the cases for Adreno GPUs with Mesa's open compiler, and count what it makes of them.",
    ),
    Command(
        "show",
        "Show the latest record of each case on each device; of a single case, everything that is known.",
    ),
    Command("ops", "Run single operators on each path, and show which are right, wrong, or do not build."),
    Command(
        "profile",
        "Show where the time of an inference goes: its kernels by time, and what makes the difference to another case.",
    ),
    Command(
        "pack",
        "Pack the suite for a machine that cannot be reached from here: what is built, the inputs, and what runs it "
        "there.",
    ),
    Command(
        "ingest",
        "Check what a bundle's run wrote, and add it to the records, as if it had been run from here.",
    ),
    Command(
        "reduce",
        "Shrink a wrong or broken network to the smallest that fails alike, and write a folder that shows it.",
    ),
    Command(
        "tune",
        "Look for better schedules than TVM's own on a device, and write the best of each task to a file.",
    ),
    Command("inspect", "Say what a network is made of, and which path can take what, before anything is built."),
    Command("init", "Write a suite file with every key and a comment on each; an existing file is never touched."),
    Command("list", "List the cases of the suite: Model x Path x Precision x Tuning.", module="list_cases"),
    Command(
        "devices",
        "List the virtual device, this host's OpenCL device, and every phone that adb knows; or those at a tracker.",
    ),
    Command("doctor", "Check what a run needs, by doing it, and say how to fix what is missing."),
    Command(
        "quirks", "List the known defects of TVM that the harness works around, and probe the installed TVM for each."
    ),
    Command("cache", "Show what has been compiled and kept, or prune it."),
    Command("history", "Measure the suite over commits and over TVM releases with asv, and publish what moved."),
    Command("fleet", "Offer the devices of this host to others, through a TVM RPC tracker."),
    Command("runtime", "Keep TVM's runtime for phones and boards on this host."),
)
"""In the order in which `--help` lists them."""

app = typer.Typer(
    name="adreno-bench",
    help="Measure and judge Apache TVM's compilation paths to Qualcomm Adreno GPUs: is each model right on each path, "
    "how fast, and if not, what broke and whose fault is it?",
    epilog="Start with `adreno-bench doctor`, then `adreno-bench run`. Exit codes: 0 all good, 1 slower, 2 usage, "
    "3 wrong or broken, 4 rig failure, 5 nothing was measured, 6 undecided: something looks slower.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_commands(app, COMMANDS)

_OURS = ("harness", "device_runner")
"""Packages of ours: if a module of these is missing, pip cannot help."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from harness.compiler.installed import harness_version, versions

        installed = versions()
        typer.echo(f"adreno-bench {harness_version()}")
        typer.echo(f"apache-tvm {installed['tvm']}, apache-tvm-ffi {installed['ffi']}")
        raise typer.Exit


@app.callback(help=app.info.help, epilog=app.info.epilog)
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the releases of this program and of TVM."
        ),
    ] = False,
) -> None:
    """The program itself; what it does is in its commands."""


def main() -> None:
    """Run a command. Whatever goes wrong ends as one line that says what to do next."""
    with end_at(*_STOPS):
        _call()


def _call() -> None:
    try:
        app()
    except Failure as failure:
        _end(str(failure), ExitCode.USAGE if failure.outcome == "usage" else ExitCode.RIG_FAILURE)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.exit(ExitCode.GOOD)
    except OSError as error:
        from device_runner.store import cache_root

        if full := disk_full(error, cache_root(), Path.cwd()):
            _end(str(full), ExitCode.RIG_FAILURE)
        _end(f"{error}: check the disk and the permissions", ExitCode.RIG_FAILURE)
    except Exception as error:
        module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if module and module not in _OURS:
            from harness.cli.commands import how_to_install

            _end(f"{module} is not installed: {how_to_install(module)}", ExitCode.RIG_FAILURE)
        hint = f"a bug in adreno-bench; set {DEBUG_VARIABLE}=1 for the traceback and report it"
        _end(f"{type(error).__name__}: {error}: {hint}", ExitCode.RIG_FAILURE)


def _end(line: str, code: ExitCode) -> NoReturn:
    from harness.cli.screen import plain
    from harness.tables import folded

    raise_if_interrupted()  # what failed on the way out is of no use to whoever pressed Ctrl-C
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    sys.stderr.write(folded(f"adreno-bench: {plain(' '.join(line.split()))}", sys.stderr) + "\n")
    sys.exit(code)
