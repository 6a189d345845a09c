"""How many cores are ours."""

import os
import subprocess
import sys

import pytest

from harness.base.process import cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to cores")
def test_a_process_that_is_bound_to_one_core_has_one() -> None:
    bind = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    code = f"{bind}; from harness.base.process import cores; print(cores())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def test_otherwise_all_that_the_system_lets_it_have() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
