"""The command line. One file per command, each thin; nothing here is imported that a command does not need."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

import typer

from device_runner.failures import Failure
from harness.cli import build, cache, devices, doctor, list_cases, quirks, run, show
from harness.outcome import ExitCode

app = typer.Typer(
    name="adreno-bench",
    help="Measure and judge Apache TVM's compilation paths to Qualcomm Adreno GPUs: is each model right on each path, "
    "how fast, and if not, what broke and whose fault is it?",
    epilog="Start with `adreno-bench doctor`, then `adreno-bench run`. Exit codes: 0 all good, 1 slower, 2 usage, "
    "3 wrong or broken, 4 rig failure, 5 nothing was measured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (run, build, show, list_cases, devices, doctor, quirks, cache):
    command.register(app)


def main() -> None:
    """Run a command. A failure reaches the person as one line with what to do next."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        app()
    except Failure as failure:
        sys.stderr.write(f"adreno-bench: {failure}\n")
        sys.exit(ExitCode.USAGE if failure.outcome == "usage" else ExitCode.RIG_FAILURE)
    except BrokenPipeError:
        sys.exit(ExitCode.GOOD)


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything is cleaned up; a second signal must not interrupt that (it has deadlines)."""
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)
