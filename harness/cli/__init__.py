"""The command line. One file per command, each thin; nothing here is imported that a command does not need."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import typer

from device_runner.failures import Failure
from harness.cli import (
    bisect,
    bless,
    build,
    cache,
    calibrate,
    compare,
    devices,
    doctor,
    fleet,
    gate,
    history,
    list_cases,
    quirks,
    run,
    runtime,
    show,
)
from harness.run.outcome import ExitCode

DEBUG_VARIABLE = "ADRENO_BENCH_DEBUG"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

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
for command in (
    run,
    calibrate,
    compare,
    bisect,
    bless,
    gate,
    history,
    build,
    show,
    list_cases,
    devices,
    fleet,
    doctor,
    quirks,
    cache,
    runtime,
):
    command.register(app)


def main() -> None:
    """Run a command. Whatever goes wrong reaches the person as one line with what to do next."""
    found = {number: signal.signal(number, _stop) for number in _STOPS}
    try:
        app()
    except Failure as failure:
        _end(str(failure), ExitCode.USAGE if failure.outcome == "usage" else ExitCode.RIG_FAILURE)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.exit(ExitCode.GOOD)
    except OSError as error:
        _end(f"{error}: check the disk and the permissions", ExitCode.RIG_FAILURE)
    except Exception as error:
        hint = f"a fault of adreno-bench; set {DEBUG_VARIABLE}=1 for the traceback and report it"
        _end(f"{type(error).__name__}: {error}: {hint}", ExitCode.RIG_FAILURE)
    finally:  # whoever called us from Python gets their Ctrl-C back, unless a signal is what ends us
        for number, handler in found.items():
            if signal.getsignal(number) is _stop:
                signal.signal(number, handler or signal.SIG_DFL)


def _end(line: str, code: ExitCode) -> NoReturn:
    from harness.cli.screen import plain

    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    sys.stderr.write(f"adreno-bench: {plain(' '.join(line.split()))}\n")
    sys.exit(code)


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything is cleaned up; a second signal must not interrupt that (it has deadlines)."""
    for other in _STOPS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)
