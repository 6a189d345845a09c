from __future__ import annotations

import pytest

from device_runner.failures import KernelBuildFailure, PathFailure, ProgramFailure, Unsupported
from device_runner.session.tvm_errors import failure_of, one_line

REMOTE = "RPCError: Error caught from RPC call:\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (REMOTE + "OpenCL: CL_BUILD_PROGRAM_FAILURE\nuse of undeclared identifier 'param_2'", KernelBuildFailure),
        (REMOTE + "InternalError: CLML Runtime Init: Qualcomm extn not present.", Unsupported),
        (REMOTE + "Module loader ffi.Module.load_from_bytes.clml is not found", Unsupported),
        (
            REMOTE + "Check failed: (e == CL_SUCCESS) is false: OpenCL Error, code=-59: CL_INVALID_OPERATION",
            ProgramFailure,
        ),
        (REMOTE + "Unknown function: nope", ProgramFailure),
        ("", ProgramFailure),
    ],
)
def test_an_error_finds_its_owner(text: str, kind: type[PathFailure]) -> None:
    failure = failure_of(text, "running a.so")
    assert type(failure) is kind
    assert failure.message.startswith("running a.so failed: ")
    assert failure.evidence == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (REMOTE + "Unknown function: nope", "Unknown function: nope"),
        ("[12:00:01] /ws/src/runtime/x.cc:78: InternalError: it broke\nStack", "InternalError: it broke"),
        (
            REMOTE + "Traceback (most recent call last):\n"
            '  File "x.cc", line 5, in run\n  0: f(int)\nInternalError: Check failed: a == b',
            "InternalError: Check failed: a == b",
        ),
        ("\n\n", "an error without a message"),
    ],
)
def test_a_person_reads_the_message_without_the_stack(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_long_message_is_cut() -> None:
    assert len(one_line("x" * 5_000)) == 300
