"""A script that shows a defect with TVM alone, for whoever gets the report.

On path `clml` that is a TVM which was built with CLML and OpenCL. Where it was not, as the wheels are not, the script
takes what adreno-bench has in their place.
"""

from __future__ import annotations

from harness.run.outcome import Owner
from harness.run.record import Record

KEYS = {
    "opencl": ["adreno", "opencl", "gpu"],
    "texture": ["adreno", "opencl", "gpu", "texture"],
    "clml": ["adreno", "opencl", "gpu", "clml"],
}
"""Of the target, by path."""

_BUILD = '''\
"""{title}. Needs apache-tvm {tvm}, apache-tvm-ffi {ffi}, onnx."""

import onnx
import tvm
from tvm import relax
from tvm.relax.backend import adreno
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import pipeline
from tvm.s_tir.backend.adreno.pipeline import default_tir_pipeline
from tvm.tirx import compilation_pipeline
{stand_in}
target = tvm.target.Target({target}, host="llvm")
with target:
    passes = [{dispatch}*adreno.legalize_passes(target), *adreno.dataflow_lower_passes(target), \
*adreno.finalize_passes(target)]
    mod = tvm.ir.transform.Sequential(passes)(from_onnx(onnx.load("model.onnx")))
# TVM's build unpacks three parts where the Adreno pipeline is one; without these lines no build for it ends well.
triple = (default_tir_pipeline(), pipeline.finalize_host_passes, pipeline.finalize_device_passes)
compilation_pipeline.PIPELINE_MAP["adreno-triple"] = lambda: triple
built = relax.build(mod, target, relax_pipeline=None, tir_pipeline="adreno-triple")
'''

_DISPATCH = "*adreno.library_dispatch_passes(target), "

_CLML_STAND_IN = """\
import tvm.relax.backend.adreno.clml  # TVM's own package forgets to

if tvm.get_global_func("relax.ext.openclml", allow_missing=True) is None:  # a TVM without CLML: adreno-bench has one
    from harness.paths.clml import register

    register()
"""

_OPENCL_STAND_IN = """
if tvm.get_global_func("device_api.opencl", allow_missing=True) is None:  # likewise
    from device_runner.runtimes import opencl
    from device_runner.store import cache_root

    opencl.load(opencl.sidecar(cache_root()))
"""

_RUN = """
import numpy as np  # from here on TVM needs OpenCL

devices = [tvm.opencl()] * max(1, len(mod.global_infos.get("vdevice", []))) + [tvm.cpu()]
built.export_library("reproduced.so")
vm = relax.VirtualMachine(tvm.runtime.load_module("reproduced.so"), devices)
vm.set_input("main", *(tvm.runtime.tensor(array) for array in np.load("inputs.npz").values()))
vm.invoke_stateful("main")
answer = vm.get_outputs("main")
for got, want in zip(answer if isinstance(answer, tuple) else (answer,), np.load("expected.npz").values()):
    print("largest error:", np.abs(got.numpy() - want).max(), "of", np.abs(want).max())
"""


def script(record: Record) -> str:
    """The text of the script."""
    limits, clml = record.identity, record.path == "clml"
    target = {
        "kind": "opencl",
        "device": "adreno",
        "keys": KEYS[record.path],
        "texture_spatial_limit": min(limits.image2d_max_width, limits.image2d_max_height),
        "texture_depth_limit": limits.image_max_array_layers,
    }
    build = _BUILD.format(
        title=f"{record.outcome.value.capitalize()} on Adreno path {record.path}",
        tvm=record.tvm,
        ffi=record.ffi,
        target=target,
        stand_in=_CLML_STAND_IN if clml else "",
        dispatch=_DISPATCH if clml else "",
    )
    if record.outcome.owner is Owner.COMPILER:
        return build
    return build + (_OPENCL_STAND_IN if clml else "") + _RUN


def needs(path: str) -> str:
    """What the script needs, in words."""
    return "with a TVM that has CLML, or with TVM's wheels and adreno-bench" if path == "clml" else "with TVM alone"
