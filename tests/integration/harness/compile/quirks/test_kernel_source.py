"""Places in tensors, which `FlattenBuffer` is to leave as they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from harness.compile.compiler.compat import tir_function, tirx, tvm
from harness.compile.compiler.pass_runner import run_passes
from harness.compile.quirks.kernel_source import flatten_as_written

PLACES = (
    "(i % {a} + {k}) // {b}",
    "(i + {k}) // {a} % {b}",
    "({k} * 40 - i) % {a}",
    "({k} * 40 - i) // {a}",
    "i % {a} % {b}",
)
LOOP = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((999,), "float32"), y: T.Buffer((24,), "float32")):
    for i in range(24):
        y[i] = x[{place}]
"""

FLATTEN, SIMPLIFY = tirx.transform.FlattenBuffer(), tirx.transform.StmtSimplify()


@given(
    form=st.sampled_from(PLACES), a=st.integers(2, 9), b=st.integers(2, 9), k=st.integers(1, 9), i=st.integers(0, 23)
)
def test_a_place_stays_the_same(form: str, a: int, b: int, k: int, i: int) -> None:
    place = form.format(a=a, b=b, k=k)
    mod = tvm.IRModule({"main": tir_function(LOOP.format(place=place))})
    flattened = run_passes(flatten_as_written([FLATTEN, SIMPLIFY])[:1], mod)["main"].script()
    (read,) = re.findall(r"= x_1\[(.+)\]$", flattened, re.MULTILINE)
    assert eval(read, {"i": i}) == eval(place, {"i": i})
