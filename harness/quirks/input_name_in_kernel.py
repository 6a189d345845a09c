"""The name of a model's input goes into OpenCL C as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harness.compiler.compat import name_of, return_type, type_of, with_function
from harness.paths.kernels import kernels
from harness.paths.opencl import OpenCLPath
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import conv, source

_NOT_IN_C = re.compile(r"[^0-9A-Za-z_]")


def probe(*applied: Quirk) -> ProbeAnswer:
    """Build a convolution of `gpu_0/data_0`, a name as Caffe2 gives it."""
    built = source(conv(input_name="gpu_0/data_0"), applied, OpenCLPath())
    parameters = [text.strip() for kernel in kernels(built) for text in kernel.parameters.split(",")]
    broken = next((text for text in parameters if "/" in text), None)
    if broken:
        return ProbeAnswer(Presence.PRESENT, f"a kernel has the parameter `{broken}`")
    return ProbeAnswer(Presence.ABSENT, f"a kernel's parameters are {', '.join(parameters)}")


def rename_inputs(mod: Any) -> Any:
    """Give the parameters of `main` names that C takes. Callers pass them by position."""
    from tvm import relax

    main = mod["main"]
    names = [name_of(parameter) for parameter in main.params]
    if not any(_NOT_IN_C.search(name) for name in names):
        return mod
    params = [relax.Var(name, type_of(old)) for name, old in zip(identifiers(names), main.params, strict=True)]
    bound = main.bind_params(dict(zip(main.params, params, strict=True)))
    renamed = relax.Function(params, bound.body, return_type(bound), bound.is_pure, bound.attrs)
    return with_function(mod, "main", renamed)


def identifiers(names: Sequence[str]) -> list[str]:
    """The names with an underscore for each character that C does not take; they stay different."""
    found: list[str] = []
    for name in names:
        wish = _NOT_IN_C.sub("_", name)
        while wish in found or (wish != name and wish in names):
            wish += "_"
        found.append(wish)
    return found


QUIRK = Quirk(
    id="input-name-in-kernel",
    title="the name of a model's input becomes the name of a kernel's parameter as it is, with `/` or `:` in it",
    upstream="python/tvm/relax/frontend/onnx/onnx_frontend.py: _sanitize_name replaces dots alone; "
    "src/target/source/codegen_c.cc: a name's hint is taken as an identifier",
    since="0.25",
    paths=("opencl", "texture", "clml"),
    probe=probe,
    workaround="such inputs get names of letters, digits and underscores; they are passed by position",
    edits=Edits(model=rename_inputs),
)
