"""What a TVM error that came back over RPC says, and whose it is."""

from __future__ import annotations

import re
import signal

from device_runner.failures import (
    EVIDENCE_LIMIT_BYTES,
    KernelBuildFailure,
    PathFailure,
    ProgramFailure,
    Unsupported,
)

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
"""Where TVM's process had the device: another one in every run."""
_UNSUPPORTED = re.compile(
    r"extn not present|extension .*not (?:present|supported|available)|cl_khr_fp16|load_from_bytes\.clml"
    r"|Unsupported target version",
    re.IGNORECASE,
)


def failure_of(text: str, doing: str) -> PathFailure:
    """The failure that an error text tells of; `doing` names the operation."""
    message = f"{doing} failed: {_ADDRESS.sub('', one_line(text))}"
    if _KERNEL_BUILD.search(text):
        first = _first_error(text)
        message = f"{message}: {first}" if first else message
        return KernelBuildFailure(message, evidence=text[:EVIDENCE_LIMIT_BYTES])  # later errors follow from the first
    kind: type[PathFailure] = Unsupported if _UNSUPPORTED.search(text) else ProgramFailure
    return kind(message, evidence=text)


def _first_error(text: str) -> str:
    """The first error that the device's OpenCL compiler names, as `error: LINE:COLUMN: what`; empty if it names none.

    The file is left out: it is a temporary one of the device, and another in every run.
    """
    log = re.split(r"CL_BUILD_PROGRAM_FAILURE|OpenCL build error.*", text)[-1].splitlines()
    found = next((line for line in log if _ERROR.search(line)), "")
    return _FILE.sub("", found, count=1).strip()[:LINE_LIMIT]


def one_line(text: str) -> str:
    """The message proper: the first line that is not TVM's wrapping, without its source position."""
    for raw in text.splitlines():
        line = raw
        while match := _WRAPPING.match(line):
            line = line[match.end() :]
        if line.strip():
            return line.strip()[:LINE_LIMIT]
    return "an error without a message"


def how_ended(code: int) -> str:
    """How a process ended, from its exit code as shells tell it: 128 + signal after a death by signal."""
    try:
        return f"died of {signal.Signals(code - 128).name}"
    except ValueError:
        return f"ended with code {code}"
