"""A script that shows a defect with TVM alone, for whoever gets the report."""

from __future__ import annotations

from harness.run.outcome import Owner
from harness.run.record import Record

KEYS = {"opencl": ["adreno", "opencl", "gpu"], "texture": ["adreno", "opencl", "gpu", "texture"]}
"""Of the target, by path; the others cannot be had with TVM alone."""

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

target = tvm.target.Target({target}, host="llvm")
with target:
    passes = [*adreno.legalize_passes(target), *adreno.dataflow_lower_passes(target), *adreno.finalize_passes(target)]
    mod = tvm.ir.transform.Sequential(passes)(from_onnx(onnx.load("model.onnx")))
# TVM's build unpacks three parts where the Adreno pipeline is one; without these lines no build for it ends well.
triple = (default_tir_pipeline(), pipeline.finalize_host_passes, pipeline.finalize_device_passes)
compilation_pipeline.register_tir_pipeline("adreno-triple", lambda: triple)
built = relax.build(mod, target, relax_pipeline=None, tir_pipeline="adreno-triple")
'''

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
    """The text of the script; empty on a path that needs more than TVM."""
    if record.path not in KEYS:
        return ""
    limits = record.identity
    target = {
        "kind": "opencl",
        "device": "adreno",
        "keys": KEYS[record.path],
        "texture_spatial_limit": min(limits.image2d_max_width, limits.image2d_max_height),
        "texture_depth_limit": limits.image_max_array_layers,
    }
    title = f"{record.outcome.value.capitalize()} on Adreno path {record.path}"
    build = _BUILD.format(title=title, tvm=record.tvm, ffi=record.ffi, target=target)
    return build if record.outcome.owner is Owner.COMPILER else build + _RUN
