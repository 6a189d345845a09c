"""What our part of the clml path costs at compile time, beside TVM's own partitioning.

    python -m benchmarks.clml_codegen [LAYERS]

Takes a network of residual blocks with LAYERS convolutions (50) through TVM's own offload passes up to code generation,
and through ours, with the quirks' workarounds, the offload report and the code generator. Processor time, pass by pass,
so that neither a busy machine nor constant folding, which is the same in both and the longest of all, hides anything.
Goal: at most 1 s more for 50 layers.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.case import Precision
from harness.compile.artifacts.compile import import_model
from harness.compile.compiler.passes import clml_offload_passes, passes_before
from harness.compile.paths.base import ImageLimits
from harness.compile.paths.clml import ClmlPath, register, relax_passes
from harness.compile.quirks import quirks_for
from harness.tools.zoo.graph_layers import ImageGraph
from harness.tools.zoo.resnet import basic_block


def network(layers: int) -> bytes:
    """`layers` convolutions of 16 channels on 32 x 32, two to a residual block."""
    net = ImageGraph("layers", (1, 16, 32, 32))
    x = net.input
    for _ in range(layers // 2):
        x = basic_block(net, x, 16, 1)
    return net.finish((x, (1, 16, 32, 32))).to_bytes()


def cpu_seconds(passes: Sequence[Any], mod: Any, target: Any) -> dict[str, float]:
    """Processor time of each pass on a module, by its name."""
    spent: defaultdict[str, float] = defaultdict(float)
    with target:
        for step in passes:
            began = time.process_time()
            mod = step(mod)
            spent[str(step.info.name)] += time.process_time() - began
    return spent


def main(layers: int = 50) -> None:
    """Print what TVM takes, what we add, and where."""
    from tvm.relax.backend.adreno.clml import clml_pattern_table

    register()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "layers.onnx"
        file.write_bytes(network(layers))
        mod, _ = import_model(file)
    target = ClmlPath().target(ImageLimits(), None)
    quirks = quirks_for("clml", Precision.FLOAT32, as_shipped=False)
    theirs = cpu_seconds(clml_offload_passes(clml_pattern_table(), target)[:-1], mod, target)
    ours = cpu_seconds(passes_before(relax_passes(target, quirks), "BindTarget"), mod, target)
    total, folding = sum(theirs.values()), theirs["FoldConstant"]
    print(f"{layers} convolutions: TVM's partitioning takes {total:.2f} s, {folding:.2f} s of it constant folding")
    added = {name: seconds - theirs.get(name, 0) for name, seconds in ours.items() if name != "FoldConstant"}
    print(f"we add {sum(added.values()):.3f} s:")
    for name, seconds in added.items():
        print(f"  {seconds:+.3f} s  {name}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
