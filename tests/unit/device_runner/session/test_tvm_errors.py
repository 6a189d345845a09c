from __future__ import annotations

import pytest

from device_runner.failures import KernelBuildFailure, PathFailure, ProgramFailure, Unsupported
from device_runner.session.tvm_errors import failure_of, one_line

REMOTE = "RPCError: Error caught from RPC call:\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (REMOTE + "OpenCL build error for device=0x5f\nuse of undeclared identifier 'param_2'", KernelBuildFailure),
        (REMOTE + "InternalError: CLML Runtime Init: Qualcomm extn not present.", Unsupported),
        (REMOTE + "Module loader ffi.Module.load_from_bytes.clml is not found", Unsupported),
        (
            REMOTE + "Check failed: (e == 0) is false: OpenCL Error, code=-59: CL_INVALID_OPERATION",
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


BUILD_ERROR = "InternalError: OpenCL build error for device=0x7fcba41e24e0\nError: CL_BUILD_PROGRAM_FAILURE\n"
LOG = "error: /data/local/tmp/pocl/tempfile_sy5vCD.cl:2:121: expected ')'\nerror: /data/tempfile_sy5vCD.cl:3:1: what\n"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (BUILD_ERROR + LOG, "error: 2:121: expected ')'"),
        ("OpenCL build error for device=0x1\n" + LOG, "error: 2:121: expected ')'"),
        (
            f"{BUILD_ERROR}error: /data/tempfile_FI2N0N.cl:59:226 <Spelling=/lib/base.h:594:22>: sizes differ\n",
            "error: 59:226 <Spelling=/lib/base.h:594:22>: sizes differ",
        ),
        (
            "InternalError: OpenCL build error for device=0x1\nError: CL_BUILD_PROGRAM_FAILURE\n"
            "<source>:7:9: error: use of undeclared identifier 'data_0_ptr'\n",
            "7:9: error: use of undeclared identifier 'data_0_ptr'",
        ),
    ],
)
def test_the_line_of_a_kernel_build_error_ends_with_the_first_error_of_the_build_log(text: str, first: str) -> None:
    failure = failure_of(REMOTE + text, "running a.so")
    assert type(failure) is KernelBuildFailure
    assert failure.message.endswith(f"OpenCL build error: {first}")


def test_a_long_build_log_is_kept_from_its_first_error_on() -> None:
    text = REMOTE + BUILD_ERROR + LOG + "error: x.cl:9:9: more\n" * 10_000
    assert "expected ')'" in failure_of(text, "running a.so").evidence


def test_a_long_message_is_cut() -> None:
    assert len(one_line("x" * 5_000)) == 300
