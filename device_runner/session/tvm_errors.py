"""What a TVM error that came back over RPC says, and whose it is."""

from __future__ import annotations

import re

from device_runner.failures import KernelBuildFailure, PathFailure, ProgramFailure, Unsupported

LINE_LIMIT = 300
"""How much of a message stands in a record's one line; the rest is evidence."""

_WRAPPING = re.compile(
    r"""^(RPCError:\ |Error\ caught\ from\ RPC\ call:|Traceback\ .*|\s*File\ ".*|\s*\^+|\s*\d+:\ .*
        |\[\d\d:\d\d:\d\d\]\ \S+:\d+:\ )""",
    re.VERBOSE,
)
"""What TVM puts around a message: its wrapper, its stack, the place in its source."""

_KERNEL_BUILD = re.compile(r"CL_BUILD_PROGRAM_FAILURE|clBuildProgram|build log", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"extn not present|extension .*not (?:present|supported|available)|cl_khr_fp16|load_from_bytes\.clml"
    r"|Unsupported target version",
    re.IGNORECASE,
)


def failure_of(text: str, doing: str) -> PathFailure:
    """The failure that an error text tells of; `doing` names the operation."""
    if _KERNEL_BUILD.search(text):
        kind: type[PathFailure] = KernelBuildFailure
    elif _UNSUPPORTED.search(text):
        kind = Unsupported
    else:
        kind = ProgramFailure
    return kind(f"{doing} failed: {one_line(text)}", evidence=text)


def one_line(text: str) -> str:
    """The message proper: the first line that is not TVM's wrapping, without its source position."""
    for raw in text.splitlines():
        line = raw
        while match := _WRAPPING.match(line):
            line = line[match.end() :]
        if line.strip():
            return line.strip()[:LINE_LIMIT]
    return "an error without a message"
