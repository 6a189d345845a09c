"""Standard streams that a shell closed, filled up or left half read end no command in a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = f"{sys.executable} -c 'from harness.cli import main; main()'"


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (f"{PROGRAM} --version >&-", 0, ""),
        (f"{PROGRAM} --version <&- >&- 2>&-", 0, ""),
        (f"{PROGRAM} --version | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}", 0, ""),
        (f"{PROGRAM} --version >/dev/full", 4, "adreno-bench: cannot write the output: No space left on device"),
        (f"{PROGRAM} run --help >/dev/full", 4, "adreno-bench: cannot write the output: No space left on device"),
        (f"{PROGRAM} nosuch 2>/dev/full", 2, ""),
    ],
)
def test_no_stream_is_a_bug(line: str, code: int, says: str) -> None:
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.partition(":")[0]) == (code, says.partition(":")[0]), done.stderr
    assert done.stderr.startswith(says)
