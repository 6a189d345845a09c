"""What was built for a case is opened, or says why it cannot be."""

from __future__ import annotations

import pytest
from fake_device import a_plan

from harness.base.failures import CompileFailure, InputRefused
from harness.measure.work import open_work


def test_inputs_that_nobody_can_compute_come_before_a_compile_error() -> None:
    built = {"c-tiny": CompileFailure("no schedule"), "o-tiny": InputRefused("index 9 is out of bounds")}
    with pytest.raises(InputRefused, match="index 9"):
        open_work(a_plan(), built)
