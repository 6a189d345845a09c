"""Whose failure it is: what TVM's errors say, how a process ended, and what a phone itself knows of a crash.

Android's handler writes a backtrace of a process that dies of its own fault into a log of its own (`logcat -b crash`;
AOSP system/core, debuggerd), which says more than the exit code that arrives here. One that was killed leaves nothing.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from device_runner.failures import (
    EVIDENCE_LIMIT_BYTES,
    DeviceCrash,
    Failure,
    Hang,
    KernelBuildFailure,
    PathFailure,
    ProgramFailure,
    RigFailure,
    Unsupported,
)

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

LINE_LIMIT = 300
"""How much of a message stands in a record's one line; the rest is evidence."""

_WRAPPING = re.compile(
    r"""^(RPCError:\ |Error\ caught\ from\ RPC\ call:|Traceback\ .*|\s*File\ ".*|\s*\^+|\s*\d+:\ .*
        |\[\d\d:\d\d:\d\d\]\ \S+:\d+:\ )""",
    re.VERBOSE,
)
"""What TVM puts around a message: its wrapper, its stack, the place in its source."""

_KERNEL_BUILD = re.compile(r"OpenCL build error|CL_BUILD_PROGRAM_FAILURE|clBuildProgram|build log", re.IGNORECASE)
_ERROR = re.compile(r"\berror\b", re.IGNORECASE)
_FILE = re.compile(r"\S+:(?=\d+:\d+\b)")
"""What compilers put before line and column."""
_ADDRESS = re.compile(r" for device=0x[0-9a-f]+")
"""Address of a device in TVM's process, which differs in every run."""
_UNSUPPORTED = re.compile(
    r"extn not present|extension .*not (?:present|supported|available)|cl_khr_fp16|load_from_bytes\.clml"
    r"|Unsupported target version",
    re.IGNORECASE,
)


_OUT_OF_STEP = re.compile(
    r"Cannot find (?:PackedFunc|ffi::Function) vm\.builtin\."
    r"|Mismatched number of arguments when calling: `vm\.builtin\."
    r"|Invalid VM file format|(?:undefined symbol|cannot locate symbol):? \"?TVM"
)
"""A library that calls TVM's runtime in another way than this runtime is called (mlc-llm#1785)."""

_CODE = re.compile(r"OpenCL Error, code=(-\d+)", re.IGNORECASE)
_TOO_LARGE = "the device has no room for a buffer of this size: take fewer bits, a smaller batch or shorter steps"
HINTS = {
    "-4": _TOO_LARGE,
    "-61": _TOO_LARGE,
    "-5": "the device lacks resources, or ended a kernel that ran too long: take shorter steps or a smaller batch",
    "-6": "the driver has no memory left: take a smaller model, or close other programs",
    "-54": "the kernel's work-group is larger than this device takes: take other schedules",
}
"""What a person does about an error of OpenCL, by its code (CL/cl.h): for -61 see mlc-llm#1382, for -54 #1844."""


def failure_of(text: str, doing: str) -> PathFailure | RigFailure:
    """Return the failure that an error text tells of; `doing` names the operation."""
    message = f"{doing} failed: {_ADDRESS.sub('', one_line(text))}"
    if _OUT_OF_STEP.search(text):
        hint = "build the library and the device's runtime with one TVM: `adreno-bench runtime --help`"
        return RigFailure(f"the library does not fit TVM's runtime: {message}", hint=hint, evidence=text)
    if _KERNEL_BUILD.search(text):
        first = _first_error(text)
        message = f"{message}: {first}" if first else message
        return KernelBuildFailure(message, evidence=text[:EVIDENCE_LIMIT_BYTES])  # later errors follow from the first
    kind: type[PathFailure] = Unsupported if _UNSUPPORTED.search(text) else ProgramFailure
    code = _CODE.search(text)
    return kind(message, hint=HINTS.get(code[1], "") if code else "", evidence=text)


def _first_error(text: str) -> str:
    """Return the first error of the device's OpenCL compiler as `error: LINE:COLUMN: what`; empty if none.

    The file is left out: it is a temporary one of the device, and another in every run.
    """
    log = re.split(r"CL_BUILD_PROGRAM_FAILURE|OpenCL build error.*", text)[-1].splitlines()
    error = next((line for line in log if _ERROR.search(line)), "")
    return _FILE.sub("", error, count=1).strip()[:LINE_LIMIT]


def one_line(text: str) -> str:
    """Return the message proper: the first line that is not TVM's wrapping, without its source position."""
    for raw in text.splitlines():
        line = raw
        while match := _WRAPPING.match(line):
            line = line[match.end() :]
        if line.strip():
            return line.strip()[:LINE_LIMIT]
    return "an error without a message"


_OWN_ASSERTION = re.compile(r"\bpocl\w*\.\w+:\d+: .*Assertion .* failed", re.IGNORECASE)


def own_assertion(log: str) -> str:
    """Return the line in which PoCL, the OpenCL of this host, ends a process by an assertion of its own; empty if none.

    Whatever the program is, it is not at fault.
    """
    return next((match[0][:LINE_LIMIT] for line in log.splitlines() if (match := _OWN_ASSERTION.search(line))), "")


def how_ended(code: int) -> str:
    """Return how a process ended, from its exit code as shells tell it: 128 + signal after a death by signal."""
    try:
        return f"died of {signal.Signals(code - 128).name}"
    except ValueError:
        return f"ended with code {code}"


_RESETS = re.compile(r"^GPU resets since the phone booted: (\d+)", re.MULTILINE)
ASK_TIMEOUT_S = 5.0
CRASH_BYTES = EVIDENCE_LIMIT_BYTES // 2
"""How much of the crash log is kept: its end. The other half of the evidence is the server's own log."""
MARGIN_S = 2
"""The log is asked from so much before the session on: a time in whole seconds is cut off."""

SCRIPT = """
read -r resets <"$2" && echo "GPU resets since the phone booted: $resets$3"
command -v logcat >/dev/null || exit 0
crashes=$(logcat -b crash -d -T "$(($(date +%s) - $1)).0" | tail -c "$4")
[ "$crashes" ] && echo "the phone's crash log since this session began:
$crashes"
exit 0
"""
"""Arguments: seconds since the session began, the node that counts resets, what is known of it, bytes of the log. The
time is by the phone's own clock, as those in its log are; logcat takes seconds with a fraction since Android 7."""


@contextmanager
def explain_crash(transport: Transport, reset_count: str, resets_before: Callable[[], int | None]) -> Iterator[None]:
    """Add to the evidence of a crash, a hang or a program's error what the phone knows of it.

    `reset_count` is the kernel's node, `resets_before` tells what it said last.
    """
    began_s = time.monotonic()
    try:
        yield
    except (DeviceCrash, Hang, ProgramFailure) as failure:
        with suppress(Failure):  # a phone that is gone knows nothing
            seconds = int(time.monotonic() - began_s) + MARGIN_S
            before = resets_before()
            earlier = "" if before is None else f" ({before} at the last reading)"
            arguments = [str(seconds), reset_count, earlier, str(CRASH_BYTES)]
            command = ["sh", "-c", SCRIPT, "read its crash log", *arguments]
            report = transport.shell(command, timeout_s=ASK_TIMEOUT_S).stdout
            if (count := _RESETS.search(report)) and before is not None and int(count[1]) > before:
                failure.gpu_resets = int(count[1]) - before
                often = "once" if failure.gpu_resets == 1 else f"{failure.gpu_resets} times"
                failure.message += f"; the GPU was reset meanwhile ({often})"
            _add(failure, report)
        raise


def _add(failure: Failure, report: str) -> None:
    report = report.strip()[-CRASH_BYTES:]
    if report:
        failure.evidence = f"{failure.evidence[-(EVIDENCE_LIMIT_BYTES - len(report) - 1) :]}\n{report}".strip()
