"""Probes of layouts and of memory on the texture path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from defects.presence import presence
from defects.sample import (
    Probe,
    choice,
    conv,
    conv_of_sum,
    fails_to_lower,
    lower,
    mask_and_its_opposite,
    max_of_channels,
    max_pool_into_smaller_image,
    network,
    norm_of_mean,
    product_with_channel,
    split_channels,
    transposed_conv,
)
from harness.compile.compiler.compat import memory_scope, type_of
from harness.compile.paths.base import Workaround
from harness.compile.paths.lowered_module import memory_scopes
from harness.compile.quirks.layouts import reorders
from harness.tools.upstream.probe_answer import ProbeAnswer

_COPY = "vm.builtin.to_device"


def _copied_between_images(*applied: Workaround) -> ProbeAnswer:
    """Look in the lowered module for a copy from one layout of images to another."""
    copies = list(_copies(lower(max_pool_into_smaller_image(), applied)))
    bad = next((" to ".join(scopes) for scopes in copies if reorders(*scopes)), "")
    none = f"{len(copies)} copies of a max pool's result, none from image to image"
    return presence(bool(bad), f"the result of a max pool is copied from {bad}", none)


def _copies(mod: Any) -> Iterator[tuple[str, str]]:
    """Scopes of source and target of each copy in a lowered `main`."""
    places = _places(mod)
    for variable, call in _calls(mod):
        if getattr(call.op, "global_symbol", "") == _COPY:
            yield places.get(call.args[0], ""), places[variable]


def _calls(mod: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each variable of `main` that holds what a call returns, and the call."""
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            if hasattr(binding.value, "op"):
                yield binding.var, binding.value


def _places(mod: Any) -> dict[Any, str]:
    """Return the memory scope of each tensor that a lowered `main` allocates or copies."""
    scopes, places = memory_scopes(mod), dict[Any, str]()
    for variable, call in _calls(mod):
        if getattr(call.op, "name", "") == "relax.vm.alloc_tensor":
            places[variable] = scopes[int(call.args[-1].value)]
        elif getattr(call.op, "global_symbol", "") == _COPY:
            places[variable] = str(call.args[-1].value)
    return places


def _given_other_memory(*applied: Workaround) -> ProbeAnswer:
    """Look in the lowered module for a kernel that takes an image and is given a buffer, or the other way round."""
    mod = lower(conv_of_sum(), applied)
    places, kernels = _places(mod), {name.name_hint: function for name, function in mod.functions.items()}
    tensors = [
        (name, places[argument], memory_scope(kernels[name], parameter))
        for _, call in _calls(mod)
        if (name := getattr(call.op, "name_hint", "")) in kernels
        for argument, parameter in zip(call.args, kernels[name].params, strict=True)
        if argument in places
    ]
    bad = next((f"{name} takes {scope} and is given {place}" for name, place, scope in tensors if place != scope), "")
    return presence(bool(bad), bad, f"{len(tensors)} tensors lie where their kernels look for them")


def _input_as_image(*applied: Workaround) -> ProbeAnswer:
    """Look what a kernel takes that reads an input of five axes, the last of which is 4."""
    from tvm import relax

    boxes = network(lambda emit, data: emit(relax.op.sigmoid(emit(relax.op.tanh(data)))), (1, 3, 2, 2, 4))
    (data,) = lower(boxes, applied)["main"].params
    scope = getattr(getattr(type_of(data), "vdevice", None), "memory_scope", "")
    return presence("texture" in scope, "an input is taken for an image", "an input lies in a buffer")


def _image_of_bools(*applied: Workaround) -> ProbeAnswer:
    """Look in the lowered module for a tensor of bools in an image."""
    text = "".join(function.script() for function in lower(mask_and_its_opposite(), applied).functions.values())
    image = re.search(r'"bool", scope="global\.texture', text)
    return presence(bool(image), "a comparison is put into an image of bools", "a comparison lies in a buffer")


PROBES: dict[str, Probe] = {
    "grouped-conv-nchw4c": fails_to_lower(partial(conv, groups=8), "a depthwise convolution is lowered"),
    "transposed-conv-layout": fails_to_lower(transposed_conv, "a transposed convolution is lowered"),
    "split-channels-layout": fails_to_lower(split_channels, "a split of channels is lowered"),
    "single-channel-layout": fails_to_lower(max_of_channels, "the maximum over channels is lowered"),
    "broadcast-channel-layout": fails_to_lower(product_with_channel, "a product with one channel is lowered"),
    "norm-layout": fails_to_lower(norm_of_mean, "a norm of a mean is lowered"),
    "bool-layout-transform": fails_to_lower(choice, "a choice by a comparison is lowered"),
    "texture-conv-out-dtype": fails_to_lower(partial(conv, dtype="float16"), "a float16 convolution is lowered"),
    "image-to-image-copy": _copied_between_images,
    "texture-input": _input_as_image,
    "texture-of-bytes": _image_of_bools,
    "shared-kernel-memory": _given_other_memory,
}
