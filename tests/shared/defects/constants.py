"""Probe of what TVM makes of operators on constants."""

from __future__ import annotations

from typing import Any

from defects.presence import presence
from defects.sample import Emit, Probe, network
from harness.compile.paths.base import Workaround, edit_relax
from harness.tools.upstream.probe_answer import ProbeAnswer


def _roots_of_constants(*applied: Workaround) -> ProbeAnswer:
    """Count what is compiled for the host while two square roots of constants of one shape, and their sum, are folded.

    A root and a sum would do: `FoldConstant` means to keep what it has compiled.
    """
    import numpy as np
    import tvm
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        roots = [emit(relax.op.sqrt(relax.const(np.full(8, number, "float32")))) for number in (4, 9)]
        return emit(relax.op.add(data, relax.op.add(*roots)))

    compiled: list[str] = []

    @tvm.instrument.pass_instrument
    class Count:
        def run_before_pass(self, _mod: Any, info: Any) -> None:
            compiled.append(str(info.name))

    passes = edit_relax([relax.transform.FoldConstant()], applied)
    with tvm.transform.PassContext(instruments=[Count()]):
        tvm.transform.Sequential(passes)(network(body, (8,)))
    builds = sum(name.endswith("MakePackedAPI") for name in compiled)
    return presence(builds > 2, f"{builds} functions are compiled for two square roots and a sum of constants")


PROBES: dict[str, Probe] = {"constants-compiled": _roots_of_constants}
