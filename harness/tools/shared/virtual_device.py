"""Where TVM keeps tensors of a module."""

from __future__ import annotations

from typing import Any


def virtual_device(target: Any, scope: str) -> Any:
    """Return a place for tensors: memory of this scope on the first device of a target.

    The class moved to Relax in 0.27.
    """
    import tvm
    from tvm import relax

    make = getattr(relax, "VDevice", None) or tvm.ir.VDevice
    return make(target, 0, scope)
