"""Tensors of integers, or of two number formats, are offloaded."""

from __future__ import annotations

from harness.compiler.compat import dtype_of
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a reshape of int64."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.reshape(x, (1, 256))), dtype="int64")
    return offers("openclml.reshape", mod, applied)


def other_than_one_float_format(match: Match) -> bool:
    """The runtime takes the format of an operator's result for all its tensors, and knows float32 and float16."""
    return {dtype_of(tensor) for tensor in match.tensors} not in ({"float32"}, {"float16"})


QUIRK = Quirk(
    id="clml-number-format",
    title="integers are offloaded and the runtime stops at them; float16 summed in float32 is read as float32",
    upstream="relax/backend/adreno/clml.py: most checks do not look at dtype; clml_utils.cc: MakeCLDataType; "
    "clml_runtime.cc gives all tensors of an operator the format of its result",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="operators on other than float32 alone or float16 alone stay on OpenCL",
    edits=ClmlEdits(veto=other_than_one_float_format),
)
