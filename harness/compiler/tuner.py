"""What stands in the way of TVM's tuner, MetaSchedule, whoever uses a part of it."""

from __future__ import annotations

import sys
import types

INTRINSICS = "tvm.s_tir.tensor_intrin"
"""Importing it registers the tensor instructions of other processors, for 20 s of processor time. `TuneContext` does
so, and no rule for OpenCL uses any."""


class without_intrinsics:  # a context manager reads like a function
    """Meanwhile importing TVM's tensor instructions does nothing, unless that was done before."""

    def __enter__(self) -> None:
        self._absent = INTRINSICS not in sys.modules
        if self._absent:
            sys.modules[INTRINSICS] = types.ModuleType(INTRINSICS)

    def __exit__(self, *_: object) -> None:
        if self._absent:
            sys.modules.pop(INTRINSICS, None)
