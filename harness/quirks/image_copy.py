"""A tensor is copied between two images that hold it in different rows and columns, which TVM's runtime cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.compiler.compat import rewrite_main, type_of
from harness.compiler.passes import Passes, insert_before
from harness.paths.lowered import memory_scopes
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import lower, max_pool_into_smaller_image

_BUFFER = "global"


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look in the lowered module for a copy from one layout of images to another."""
    copies = list(_copies(lower(max_pool_into_smaller_image(), applied)))
    for source, target in copies:
        if _reorders(source, target):
            return ProbeAnswer(Presence.PRESENT, f"the result of a max pool is copied from {source} to {target}")
    return ProbeAnswer(Presence.ABSENT, f"{len(copies)} copies of a max pool's result, none from image to image")


def _copies(mod: Any) -> Iterator[tuple[str, str]]:
    """Scopes of source and target of each copy in a lowered `main`."""
    scopes = memory_scopes(mod)
    lies_in: dict[Any, str] = {}
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            op = getattr(call, "op", None)
            if getattr(op, "name", "") == "relax.vm.alloc_tensor":
                lies_in[binding.var] = scopes[int(call.args[-1].value)]
            elif getattr(op, "global_symbol", "") == "vm.builtin.to_device":
                lies_in[binding.var] = str(call.args[-1].value)
                yield lies_in.get(call.args[0], ""), lies_in[binding.var]


def copy_through_buffers(passes: Passes) -> Passes:
    """Before kernels are made for the scopes of their arguments, put a buffer between the images of a copy."""
    import tvm

    made = tvm.transform.module_pass(_through_buffers, opt_level=0, name="adreno_bench.CopyThroughBuffers")
    return insert_before(passes, "SpecializePrimFuncBasedOnCallSite", made)


def _through_buffers(mod: Any, _context: Any) -> Any:
    from tvm import relax
    from tvm.relax.dpl import is_op, wildcard

    data = wildcard()

    def replace(call: Any, matched: Any) -> Any:
        source, target = type_of(matched[data]).vdevice, call.attrs.dst_vdevice
        if not source or not _reorders(str(source.memory_scope), str(target.memory_scope)):
            return call
        buffer = type(target)(target.target, int(target.vdevice_id), _BUFFER)
        return relax.op.to_vdevice(relax.op.to_vdevice(matched[data], buffer), target)

    return relax.transform.Normalize()(rewrite_main(mod, is_op("relax.to_vdevice")(data), replace))


def _reorders(source: str, target: str) -> bool:
    """Whether both are images, in which TVM lays out the same tensor differently."""
    return "texture" in source and "texture" in target and source != target


QUIRK = Quirk(
    id="image-to-image-copy",
    title="a tensor is copied between images of different layouts and extents: CL_INVALID_VALUE on the device",
    upstream="src/backend/opencl/runtime/opencl_device_api.cc: CopyDataFromTo takes the region from the target alone; "
    "src/relax/backend/adreno/annotate_custom_storage.cc asks for such copies",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="such a copy goes through a buffer, from which and to which TVM's runtime copies right",
    edits=Edits(relax=copy_through_buffers),
)
