"""Graphs and bytes that no compiler wrote: the CLML model answers with an error, and never crashes."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clml_graphs import SYMBOL, Graph, golden, random_tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import LONG_S

from device_runner.runtimes import clml as clml_runtime

pytestmark = [pytest.mark.rest, pytest.mark.device]

MODULES = [module for modules in golden().values() for module in modules]
fuzz = settings(max_examples=300)


@pytest.fixture(scope="session")
def tvm(sidecar_cache: Path) -> Any:
    named = os.environ.get("CLML_MODEL")
    clml_runtime.load(Path(named) if named else clml_runtime.library(sidecar_cache))
    import tvm

    return tvm


@pytest.fixture(scope="session")
def create(tvm: Any) -> Callable[..., Any]:
    from tvm_ffi import get_global_func

    factory: Callable[..., Any] = get_global_func("runtime.clml_runtime_create")
    return factory


@pytest.fixture(scope="session")
def load(tvm: Any) -> Callable[[bytes], Any]:
    from tvm_ffi import get_global_func

    loader: Callable[[bytes], Any] = get_global_func(clml_runtime.LOADER)
    return loader


def sum_of_two() -> dict[str, Any]:
    graph = Graph()
    graph.out(graph.kernel("relax.add", [graph.input(1, 4), graph.random(1, 4)], (1, 4)))
    parsed: dict[str, Any] = json.loads(graph.json())
    return parsed


def changed(*path: Any, to: Any) -> str:
    """`sum_of_two` with one place changed."""
    graph = sum_of_two()
    *parents, last = path
    place: Any = graph
    for key in parents:
        place = place[key]
    place[last] = to
    return json.dumps(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("[]", "Map"),
        ("{}", "there is no nodes"),
        ("[" * 1_000_000, "nest deeper"),
        ('{"a": "' + "[" * 100 + '"}', "Unknown key: a"),
        (changed("surprise", to=1), "Unknown key: surprise"),
        (changed("nodes", 0, "surprise", to=1), "Unknown key: surprise"),
        (changed("nodes", 0, "op", to="output"), "unknown kind of node"),
        (changed("nodes", 2, "inputs", to=[]), "has 0 inputs"),
        (changed("nodes", 2, "inputs", 0, to=[2, 0, 0]), "node 2 is not below 2"),
        (changed("nodes", 2, "inputs", 0, to=[-1, 0, 0]), "node -1 is not below 2"),
        (changed("nodes", 2, "inputs", 0, to=[1, 1, 0]), "output 1 is not below 1"),
        (changed("nodes", 2, "inputs", 0, to=[1]), "an entry needs"),
        (changed("nodes", 2, "inputs", 0, to=["0", 0, 0]), "int"),
        (changed("nodes", 0, "attrs", "dtype", to=["float32"] * 2), "1 shapes and 2 types"),
        (changed("nodes", 0, "attrs", "dtype", to=["quaternion"]), "dtype"),
        (changed("nodes", 0, "attrs", to={}), "Key: shape is not found"),
        (changed("nodes", 1, "name", to="other"), "Found non-existent constant: other"),
        (changed("arg_nodes", to=[0, 1, 1]), "is not one argument"),
        (changed("arg_nodes", to=[0, 1, 2]), "is not one argument"),
        (changed("arg_nodes", to=[1]), "is not among arg_nodes"),
        (changed("arg_nodes", to=[0, 1, 2**40]), "is not below 3"),
        (changed("node_row_ptr", to=[0, 1, 2]), "does not fit the nodes"),
        (changed("node_row_ptr", to=[0, 1, 2, 2**40]), "not a running sum"),
        (changed("heads", to=[[3, 0, 0]]), "node 3 is not below 3"),
    ],
)
def test_a_broken_graph_is_not_loaded(text: str, message: str, create: Callable[..., Any]) -> None:
    names = [node["name"] for node in sum_of_two()["nodes"] if node["op"] == "const"]
    with pytest.raises(Exception, match=message):
        create(SYMBOL, text, names)


@pytest.mark.parametrize("names", [[], ["a"], [f"{SYMBOL}_const_0", "a"]])
def test_constants_must_be_those_of_the_graph(names: list[str], create: Callable[..., Any]) -> None:
    with pytest.raises(Exception, match="constant"):
        create(SYMBOL, json.dumps(sum_of_two()), names)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([], "0 dimensions"),
        ([1] * 5, "5 dimensions"),
        ([1, -1], "clCreateMLTensorWithUsageQCOM"),
        ([0, 4], "clCreateMLTensorWithUsageQCOM"),
        ([2**62, 4], "clCreateMLTensorWithUsageQCOM"),
        ([2**32, 2**32], "clCreateMLTensorWithUsageQCOM"),
        ([2**15, 2**15], "clCreateBuffer"),
    ],
)
def test_an_impossible_shape_is_refused(shape: list[int], message: str, create: Callable[..., Any]) -> None:
    graph = Graph()
    graph.out(graph.kernel("relax.nn.relu", [graph.input(*shape)], shape))
    with pytest.raises(Exception, match=message):
        create(SYMBOL, graph.json(), [])[f"__init_{SYMBOL}"]([])


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"padding": [1, 1]}, "has a padding of 2"),
        ({"padding": [1, 1, 1, -1]}, "has a padding of -1"),
        ({"strides": [0, 1]}, "a stride of 0"),
        ({"strides": [2**40, 1]}, "has a strides of 1099511627776"),
        ({"strides": "1"}, "String|Array"),
        ({"activation_type": "tanh"}, "Unknown activation type:tanh"),
    ],
)
def test_an_impossible_convolution_is_refused(
    attrs: dict[str, Any], message: str, create: Callable[..., Any], tvm: Any
) -> None:
    graph = Graph()
    inputs = [graph.input(1, 2, 3, 3), graph.random(2, 2, 3, 3)]
    graph.out(graph.conv("nn.conv2d", inputs, (1, 2, 3, 3), **attrs))
    module = create(SYMBOL, graph.json(), graph.const_names())
    with pytest.raises(Exception, match=message):
        module[f"__init_{SYMBOL}"]([tvm.runtime.tensor(values) for values in graph.constants])


def test_what_nobody_reads_or_makes_is_refused(create: Callable[..., Any]) -> None:
    unread = Graph()
    unread.input(1, 4)
    unread.out(unread.kernel("relax.nn.relu", [unread.input(1, 4)], (1, 4)))
    unmade = Graph()
    unmade.kernel("relax.nn.relu", [unmade.input(1, 4)], (1, 4))
    unmade.out(0)
    for graph, message in ((unread, "nothing reads 'x0'"), (unmade, "nothing computes the output 'x0'")):
        with pytest.raises(Exception, match=message):
            create(SYMBOL, graph.json(), [])[f"__init_{SYMBOL}"]([])


@pytest.mark.parametrize("size", [2**64 - 1, 2**63, 2**40, 9])
@pytest.mark.parametrize("place", range(4))
def test_no_length_is_believed(place: int, size: int, load: Callable[[bytes], Any]) -> None:
    """Of the symbol, the graph, the list of names, the first name."""
    graph = json.dumps(sum_of_two()).encode()
    parts = [b"symbol", graph, b"", f"{SYMBOL}_const_0".encode()]
    lengths = [len(parts[0]), len(graph), 1, len(parts[3])]
    lengths[place] = size + lengths[place] if size == 9 else size
    data = b"".join(struct.pack("<Q", length) + part for length, part in zip(lengths, parts, strict=True))
    with pytest.raises(Exception, match=r"Loading (symbol name|graph json|the const name list) failed|JSON|Expecting"):
        load(data)


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    data = bytearray.fromhex(draw(st.sampled_from(MODULES))["bytes_hex"])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        until = draw(st.integers(at, min(at + 12, len(data))))
        data[at:until] = draw(st.binary(max_size=12))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@fuzz
@given(data=damaged_bytes())
def test_damaged_bytes_load_or_are_an_error(data: bytes, load: Callable[[bytes], Any]) -> None:
    with contextlib.suppress(Exception):
        load(data).inspect_source()


numbers = st.sampled_from([-1, 0, 1, 2, 3, 7, 2**31, 2**32 + 1, 2**63 - 1, -(2**63)])
others: st.SearchStrategy[Any] = st.sampled_from(
    [1.5, "", "1", "float16", None, [], [0], [[]], [[1, 4]], [0, 0, 0], {}, {"shape": [[1]]}]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: the list or object, and the index or key."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    return [place for key in keys for place in ((value, key), *places(value[key]))]


@st.composite
def damaged_module(draw: st.DrawFn) -> dict[str, Any]:
    module: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(MODULES)))
    graph = module["graph"]
    for _ in range(draw(st.integers(1, 3))):
        parent, key = draw(st.sampled_from(places(graph)))
        old = parent[key]
        alike = [other[index] for other, index in places(graph) if type(other[index]) is type(old)]
        strategies = [st.sampled_from(alike)] * 3 + [numbers] * 3 * isinstance(old, int) + [others]
        parent[key] = copy.deepcopy(draw(st.one_of(strategies)))
    return module


@fuzz
@given(module=damaged_module())
def test_a_damaged_graph_runs_or_is_an_error(module: dict[str, Any], create: Callable[..., Any], tvm: Any) -> None:
    graph = module["graph"]
    try:
        made = create(SYMBOL, json.dumps(graph), module["const_names"])
    except Exception:
        return
    # What was loaded has a shape and a type in every node, however odd.
    attrs = [node.get("attrs", node.get("attr")) for node in graph["nodes"]]
    if any(math.prod(one["shape"][0]) > 10**6 for one in attrs):
        return
    with contextlib.suppress(Exception):
        made[f"__init_{SYMBOL}"]([tvm.runtime.tensor(values) for values in random_tensors(graph, "const")])
        outputs = [np.zeros(attrs[head[0]]["shape"][0], attrs[head[0]]["dtype"][0]) for head in graph["heads"]]
        made[SYMBOL](*(tvm.runtime.tensor(values) for values in (*random_tensors(graph, "input"), *outputs)))


@pytest.mark.long
def test_address_sanitizer_finds_nothing(sidecar_cache: Path) -> None:
    library = clml_runtime.library(
        sidecar_cache, extra_flags=["-fsanitize=address,undefined", "-fno-sanitize-recover", "-O0"]
    )
    # The interpreter is not instrumented, so the sanitizers must come first, and with them the library whose
    # __cxa_throw they wrap. Leaks are not looked for: the interpreter keeps much until the end.
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    preload = " ".join(gcc_file(name) for name in names)
    files = [str(Path(__file__).with_name(name)) for name in ("test_clml_runtime.py", Path(__file__).name)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *files, "-q", "-m", "not slow and not long", "-k", "not opencl and not meant"],
        env={**os.environ, "CLML_MODEL": str(library), "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = re.search(r"(\d+) passed", done.stdout)
    assert found
    assert int(found[1]) > 100


def gcc_file(name: str) -> str:
    command = [os.environ.get("CXX") or "g++", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
