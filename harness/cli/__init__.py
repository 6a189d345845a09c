"""The command line. One file per command, each thin, and imported when the command is called."""

from __future__ import annotations

import logging
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
from harness.base.outcome import ExitCode
from harness.base.terminal import TerminalLog
from harness.cli.commands import Command, Program, add_commands

DEBUG_VARIABLE = "ADRENO_BENCH_DEBUG"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

MEASURE, JUDGE, EXPLAIN, DEVICES, SET_UP = "Measure", "Judge", "Explain", "Devices", "Set up"
COMMANDS = (
    Command("run", "Compile, judge and time every case of the suite, on one device or several.", MEASURE),
    Command("build", "Compile the cases and show what the compiler made of them.", MEASURE),
    Command("tune", "Search for schedules that are faster than TVM's own.", MEASURE, "harness.tools.tune.command:tune"),
    Command(
        "ops",
        "Test single operators on each path: right, wrong, or not built.",
        MEASURE,
        "harness.tools.ops.command:ops",
    ),
    Command(
        "pack", "Pack the suite for a machine that you cannot reach.", MEASURE, "harness.tools.bundle.pack_command:pack"
    ),
    Command(
        "ingest",
        "Check the results of a bundle and add them to the records.",
        MEASURE,
        "harness.tools.bundle.ingest_command:ingest",
    ),
    Command(
        "gate",
        "Run the suite and compare it with its baselines: exit 3 if a case is wrong or broken, 1 if it is slower.",
        JUDGE,
    ),
    Command("bless", "Save the latest right results as baselines.", JUDGE),
    Command("compare", "Compare two releases, commits or records files.", JUDGE),
    Command(
        "bisect",
        "Find the first release or commit with which a case is wrong, broken or slower.",
        JUDGE,
        "harness.tools.upstream.bisect_command:bisect",
    ),
    Command("calibrate", "Measure the noise of each case: the smallest change that a gate can detect.", JUDGE),
    Command("history", "Measure commits and releases with asv, and publish what moved.", JUDGE),
    Command("show", "Show the latest record of each case, or a summary of one case.", EXPLAIN),
    Command(
        "records", "Keep the records of many runs and hosts in Parquet.", EXPLAIN, "harness.tools.lake.command:records"
    ),
    Command("report", "Write one HTML page of a run, a gate or a comparison.", EXPLAIN),
    Command(
        "profile",
        "Show which kernels take the time, and why two cases or builds differ.",
        EXPLAIN,
        "harness.tools.profile.command:profile",
    ),
    Command(
        "reduce",
        "Shrink a wrong or broken network to the smallest that fails alike.",
        EXPLAIN,
        "harness.tools.explain.reduce_command:reduce",
    ),
    Command(
        "inspect",
        "Count the operators of a network, and show which path can take which.",
        EXPLAIN,
        "harness.tools.ops.inspect_command:inspect",
    ),
    Command(
        "isa",
        "Count the Adreno machine code of the kernels, without a phone.",
        EXPLAIN,
        "harness.tools.isa.command:isa",
    ),
    Command(
        "quirks",
        "List the known defects of TVM, and probe the installed TVM for each.",
        EXPLAIN,
        "harness.tools.upstream.quirks_command:quirks",
    ),
    Command("devices", "List the virtual phone, the OpenCL device of this host, and every phone.", DEVICES),
    Command(
        "doctor",
        "Check what a run needs, and say how to fix what is missing.",
        DEVICES,
        "harness.tools.doctor.command:doctor",
    ),
    Command("runtime", "Keep TVM's runtime for phones and boards on this host.", DEVICES),
    Command("fleet", "Offer the devices of this host to other hosts.", DEVICES, "harness.tools.fleet.command:fleet"),
    Command("init", "Write a suite file with every key and a comment on each.", SET_UP),
    Command("list", "List the cases of the suite.", SET_UP, "harness.cli.list_cases:list_cases"),
    Command("cache", "Show what adreno-bench keeps in its cache, or remove it.", SET_UP),
)
"""Groups of commands, in the order of `--help`."""

app = typer.Typer(
    name="adreno-bench",
    help="Find which models got slower, wrong or broken on Apache TVM's compilation paths to Qualcomm Adreno GPUs.",
    epilog="Start with `adreno-bench doctor`, then `adreno-bench run`. Exit codes: 0 all good, 1 slower, 2 usage, "
    "3 wrong or broken, 4 rig failure, 5 nothing was measured, 6 undecided.",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
add_commands(app, COMMANDS)

_LOG = TerminalLog()
_OURS = ("harness", "device_runner")
"""Packages of ours: if a module of these is missing, pip cannot help."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from harness.base.terminal import write
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
    """Run a command. Whatever goes wrong ends as one line that says what to do next."""
    logging.getLogger().addHandler(_LOG)  # which is added once, however often this is called
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
        elsewhere = ", or set ADRENO_BENCH_CACHE to a folder of yours" if _in_cache(error, cache_root()) else ""
        _end(f"{error}: check the disk and the permissions{elsewhere}", ExitCode.RIG_FAILURE)
    except Exception as error:
        module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if module and module not in _OURS:
            from harness.cli.commands import how_to_install

            _end(f"{module} is not installed: {how_to_install(module)}", ExitCode.RIG_FAILURE)
        hint = f"a bug in adreno-bench; set {DEBUG_VARIABLE}=1 for the traceback and report it"
        _end(f"{type(error).__name__}: {error}: {hint}", ExitCode.RIG_FAILURE)


def _in_cache(error: OSError, cache: Path) -> bool:
    """Return whether what failed was the cache, or making a folder above it."""
    failed = Path(error.filename) if isinstance(error.filename, str) else None
    return failed is not None and (failed.is_relative_to(cache) or cache.is_relative_to(failed))


def _end(line: str, code: ExitCode) -> NoReturn:
    from harness.base.tables import folded
    from harness.base.terminal import plain, tell

    raise_if_interrupted()  # what failed on the way out is of no use to whoever pressed Ctrl-C
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    tell(folded(f"adreno-bench: {plain(' '.join(line.split()))}", sys.stderr))
    sys.exit(code)
