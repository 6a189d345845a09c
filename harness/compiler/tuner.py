"""What stands in the way of TVM's tuner, MetaSchedule, whoever uses a part of it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

INTRINSICS = "tvm.s_tir.tensor_intrin"
"""Importing it registers the tensor instructions of other processors, for 20 s of processor time. `TuneContext` does
so, and no rule for OpenCL uses any."""


@contextmanager
def without_intrinsics() -> Iterator[None]:
    """Meanwhile importing TVM's tensor instructions does nothing, unless that was done before."""
    absent = INTRINSICS not in sys.modules
    if absent:
        sys.modules[INTRINSICS] = types.ModuleType(INTRINSICS)
    try:
        yield
    finally:
        if absent:
            sys.modules.pop(INTRINSICS, None)
