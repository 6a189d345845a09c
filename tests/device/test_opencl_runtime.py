"""The OpenCL runtime on a real OpenCL device (PoCL): memory, copies, kernels, timers, binaries, threads.

The same file is run under AddressSanitizer and oclgrind by test_opencl_runtime_builds.py, which names the library to
test in SIDECAR. What it says of errors and limits is what TVM's own runtime does, which can be tested in the same way:
with ADRENO_BENCH_TEST_STOCK naming a folder with TVM's own build, that one is tested, but for what only ours has.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import math
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import LONG_S

from device_runner.runtimes import probe
from device_runner.runtimes.opencl import DEVICE_VARIABLE, load, sidecar
from harness.tools.doctor.opencl_status import opencl_status

pytestmark = [pytest.mark.rest, pytest.mark.device]

STOCK = os.environ.get("ADRENO_BENCH_TEST_STOCK")
of_ours = pytest.mark.skipif(bool(STOCK), reason="TVM's own OpenCL runtime does otherwise, or does not look")
Array = npt.NDArray[Any]
Kernels = Callable[..., Any]
SCOPES = ("global.texture", "global.texture-weight", "global.texture-nhwc")
few = settings(max_examples=15)


@pytest.fixture(scope="session")
def library(pytestconfig: pytest.Config) -> Path:
    named = f"{STOCK}/libtvm_runtime_opencl.so" if STOCK else os.environ.get("SIDECAR")
    return Path(named) if named else sidecar(pytestconfig.cache.mkdir("sidecar"))


@pytest.fixture(scope="session")
def tvm(library: Path) -> Any:
    load(library)
    import tvm

    return tvm


@pytest.fixture(scope="session")
def device(tvm: Any) -> Any:
    return tvm.opencl()


@pytest.fixture(scope="session")
def tensor(tvm: Any, device: Any) -> Callable[..., Any]:
    """A tensor on the device with these elements, in a storage scope."""

    def make(values: Array, scope: str = "global") -> Any:
        return tvm.runtime.empty(values.shape, str(values.dtype), device, mem_scope=scope).copyfrom(values)

    return make


@pytest.fixture(scope="session")
def kernels(tvm: Any) -> Kernels:
    """Loads OpenCL C as the compiler would have written it."""
    from tvm_ffi import get_global_func

    loader = get_global_func("ffi.Module.load_from_bytes.opencl")

    def make(sources: dict[str, str], arg_types: Sequence[str], tags: Sequence[str] = ("blockIdx.x",)) -> Any:
        return Loaded(loader(module_bytes(sources, arg_types, tags)))

    return make


class Loaded:
    """A module whose kernels take tensors. TVM's own take what compiled code passes: pointers to their data."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getitem__(self, name: str) -> Callable[..., Any]:
        function = self.module[name]
        return lambda *arguments: function(*map(pointer, arguments))


def pointer(argument: Any) -> Any:
    """To the data of a tensor; anything else as it is."""
    if not hasattr(argument, "_to_dlpack"):
        return argument
    capsule = argument._to_dlpack()  # tvm-ffi 0.1.12 has no `data_ptr`
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return ctypes.c_void_p(ctypes.c_void_p.from_address(address(capsule, b"dltensor")).value)


@pytest.fixture(scope="session")
def prober(pytestconfig: pytest.Config) -> Path:
    return probe.library(pytestconfig.cache.mkdir("sidecar"))


def module_bytes(sources: dict[str, str], arg_types: Sequence[str], tags: Sequence[str]) -> bytes:
    """TVM's module of kind `opencl`: format, name -> (name, argument types, launch tags, extra tags), source."""
    codes = {
        "handle": (3, 64),
        "int32": (0, 32),
        "int64": (0, 64),
        "float32": (2, 32),
        "float64": (2, 64),
        "int8": (0, 8),
    }

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def many(values: Sequence[bytes]) -> bytes:
        return struct.pack("<Q", len(values)) + b"".join(values)

    types = many([struct.pack("<BBH", *codes[t], 1) for t in arg_types])
    functions = [text(n) + text(n) + types + many([text(t) for t in tags]) + many([]) for n in sources]
    code = "".join(f"// Function: {name}\n{source}\n" for name, source in sources.items())
    return text("cl") + many(functions) + text(code)


def held() -> tuple[int, int]:
    """Events that are not yet released, and bytes of the pool."""
    events, pool_bytes = ctypes.c_int64(), ctypes.c_int64()
    ctypes.CDLL(None).adreno_bench_opencl_held(ctypes.byref(events), ctypes.byref(pool_bytes))
    return events.value, pool_bytes.value


GARBAGE = struct.pack("<QQ", 1, len(b"add_one")) + b"add_one" + struct.pack("<Q", 4) + b"junk"
ADD_ONE = {"add_one": "__kernel void add_one(__global float* a) { a[get_global_id(0)] += 1.0f; }"}
shapes = st.lists(st.integers(0, 9), max_size=4).map(tuple)
texture_shapes = st.tuples(*[st.integers(1, 6)] * 4).map(lambda s: (*s, 4))
dtypes = st.sampled_from(["float32", "float16", "int8", "int64"])


def random(shape: tuple[int, ...], dtype: str = "float32") -> Array:
    return (np.random.default_rng(len(shape)).standard_normal(shape) * 100).astype(dtype)


# --- memory and copies ------------------------------------------------------------------------------------------------


@few
@given(shape=shapes, dtype=dtypes)
def test_a_buffer_gives_back_what_was_written(tensor: Any, shape: tuple[int, ...], dtype: str) -> None:
    values = random(shape, dtype)
    np.testing.assert_array_equal(tensor(values).numpy(), values)


@few
@given(shape=texture_shapes, dtype=st.sampled_from(["float32", "float16"]), scope=st.sampled_from(SCOPES))
def test_an_image_gives_back_what_was_written(tensor: Any, shape: tuple[int, ...], dtype: str, scope: str) -> None:
    values = random(shape, dtype)
    np.testing.assert_array_equal(tensor(values, scope).numpy(), values)


@few
@given(shape=texture_shapes, source=st.sampled_from(("global", *SCOPES)), target=st.sampled_from(("global", *SCOPES)))
def test_tensors_are_copied_unless_two_images_differ(
    tensor: Any, shape: tuple[int, ...], source: str, target: str
) -> None:
    """Two images hold the same elements in other rows and columns, and TVM copies what the target holds."""
    values = random(shape)
    copy = tensor(np.zeros_like(values), target)
    original = tensor(values, source)
    if "global" not in (source, target) and sides(shape, source) != sides(shape, target):
        with pytest.raises(RuntimeError, match="OpenCL Error, code=-30: CL_INVALID_VALUE"):
            original.copyto(copy)
        return
    original.copyto(copy)
    np.testing.assert_array_equal(copy.numpy(), values)


def sides(shape: tuple[int, ...], scope: str) -> tuple[int, int, int]:
    """Layers, rows and columns of a tensor's image."""
    axis = {"global.texture": len(shape) - 2, "global.texture-weight": 1, "global.texture-nhwc": 2}[scope]
    return math.prod(shape[: axis - 1]), shape[axis - 1], math.prod(shape[axis:-1])


@pytest.mark.parametrize(
    ("scope", "laid_out"),
    [
        ("global.texture", (2 * 3, 5, 7)),
        ("global.texture-weight", (1, 2, 3 * 5 * 7)),
        ("global.texture-nhwc", (2, 3, 5 * 7)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_kernels_find_texels_where_tvm_put_them(
    tensor: Any, kernels: Kernels, scope: str, laid_out: tuple[int, int, int], dtype: str
) -> None:
    source = """__kernel void unroll(__read_only image2d_array_t image, __global float4* out, __global int* sides) {
      const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
      const int layers = get_image_array_size(image), rows = get_image_height(image), columns = get_image_width(image);
      sides[0] = layers; sides[1] = rows; sides[2] = columns;
      for (int i = 0; i < layers * rows * columns; ++i)
        out[i] = read_imagef(image, sampler, (int4)(i % columns, i / columns % rows, i / columns / rows, 0));
    }"""
    values = random((2, 3, 5, 7, 4), dtype)
    out, found = tensor(np.zeros(values.size, "float32")), tensor(np.zeros(3, "int32"))
    kernels({"unroll": source}, ["handle"] * 3)["unroll"](tensor(values, scope), out, found, 1)
    assert tuple(found.numpy()) == laid_out == sides(values.shape, scope)
    np.testing.assert_array_equal(out.numpy(), values.astype("float32").ravel())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_kernels_write_images(tensor: Any, kernels: Kernels, dtype: str) -> None:
    source = """__kernel void fill(__write_only image2d_array_t image) {
      const int x = get_group_id(0);
      write_imagef(image, (int4)(x, 0, 0, 0), (float4)(4 * x, 4 * x + 1, 4 * x + 2, 4 * x + 3));
    }"""
    image = tensor(np.zeros((1, 1, 9, 4), dtype), "global.texture")
    kernels({"fill": source}, ["handle"])["fill"](image, 9)
    np.testing.assert_array_equal(image.numpy().ravel(), np.arange(36, dtype=dtype))


def test_views_at_an_offset_are_copied(tensor: Any) -> None:
    values = random((6, 5))
    whole, other = tensor(values), tensor(np.zeros((6, 5), "float32"))
    rows = whole._create_view((2, 5), relative_byte_offset=3 * 5 * 4)
    np.testing.assert_array_equal(rows.numpy(), values[3:5])
    rows.copyto(other._create_view((2, 5), relative_byte_offset=1 * 5 * 4))
    np.testing.assert_array_equal(other.numpy()[1:3], values[3:5])
    rows.copyfrom(np.ones((2, 5), "float32"))
    np.testing.assert_array_equal(whole.numpy()[2:6], np.concatenate([values[2:3], np.ones((2, 5)), values[5:]]))


def test_a_buffer_view_is_copied_to_an_image_and_back(tensor: Any) -> None:
    values = random((2, 3, 5, 4))
    buffer, image = tensor(values), tensor(np.zeros((1, 3, 5, 4), "float32"), "global.texture")
    second = buffer._create_view((1, 3, 5, 4), relative_byte_offset=3 * 5 * 4 * 4)
    second.copyto(image)
    np.testing.assert_array_equal(image.numpy()[0], values[1])
    image.copyto(buffer._create_view((1, 3, 5, 4)))
    np.testing.assert_array_equal(buffer.numpy()[0], values[1])


def test_a_view_of_an_image_is_its_first_corner(tensor: Any) -> None:
    """How much of an image is copied follows from the shape of the tensor alone."""
    values = random((1, 3, 5, 4))
    image = tensor(values, "global.texture")
    np.testing.assert_array_equal(image._create_view((1, 2, 5, 4)).numpy(), values[:, :2])


def test_tensors_of_different_sizes_are_not_copied(tensor: Any) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        tensor(random((2, 3))).copyto(tensor(random((2, 4))))


def test_an_image_may_hold_integers(tensor: Any) -> None:
    values = random((2, 3, 5, 4), "int32")
    np.testing.assert_array_equal(tensor(values, "global.texture").numpy(), values)


@pytest.mark.parametrize(
    ("shape", "dtype", "scope", "complaint"),
    [
        ((4,), "float32", "global.texture-weight", "Number of axes to flatten into rows must be less than shape rank"),
        ((2, 3, 4), "float64", "global.texture", "data type is not supported in OpenCL runtime yet: float64"),
        ((2, 3, 4), "float32", "global.texture-nchw", "unknown texture lowering convention: global.texture-nchw"),
        ((1, 1, 1 << 20, 4), "float32", "global.texture", r"Error, code=-\d+: CL_INVALID_(IMAGE_SIZE|OPERATION)"),
    ],
)
def test_an_impossible_image_is_refused_with_the_reason(
    tvm: Any, device: Any, shape: tuple[int, ...], dtype: str, scope: str, complaint: str
) -> None:
    with pytest.raises(RuntimeError, match=complaint):
        tvm.runtime.empty(shape, dtype, device, mem_scope=scope)


# --- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(bool(STOCK), reason="it runs on the virtual phone's GPU, and no Adreno computes in float64")
def test_scalars_of_every_width_reach_the_kernel(tensor: Any, kernels: Kernels) -> None:
    source = """__kernel void keep(__global double* out, int a, long b, float c, double d) {
      out[0] = a; out[1] = b; out[2] = c; out[3] = d;
    }"""
    out = tensor(np.zeros(4, "float64"))
    kernels({"keep": source}, ["handle", "int32", "int64", "float32", "float64"])["keep"](
        out, -70000, -(1 << 40), 0.1, 0.1, 1
    )
    np.testing.assert_array_equal(out.numpy(), [-70000, -(1 << 40), np.float32(0.1), 0.1])


def test_a_scalar_that_tvm_does_not_pass_is_refused_when_its_kernel_is_looked_up(kernels: Kernels) -> None:
    module = kernels({"keep": "__kernel void keep(char a) {}"}, ["int8"])
    with pytest.raises(RuntimeError, match="Cannot handle int8 as device function argument"):
        module["keep"]


def test_extents_go_where_their_tags_say(tensor: Any, kernels: Kernels) -> None:
    source = """__kernel void sizes(__global int* out) {
      for (int i = 0; i < 3; ++i) { out[i] = get_num_groups(i); out[3 + i] = get_local_size(i); }
    }"""
    out = tensor(np.zeros(6, "int32"))
    tags = ("threadIdx.y", "blockIdx.z", "blockIdx.x", "threadIdx.x")
    kernels({"sizes": source}, ["handle"], tags)["sizes"](out, 2, 3, 4, 5)
    np.testing.assert_array_equal(out.numpy(), [4, 1, 3, 5, 2, 1])


def test_an_empty_extent_counts_as_one(tensor: Any, kernels: Kernels) -> None:
    values = tensor(np.zeros(1, "float32"))
    kernels(ADD_ONE, ["handle"])["add_one"](values, 0)
    assert values.numpy()[0] == 1


def test_a_kernel_that_does_not_compile_says_why_and_only_once(tensor: Any, kernels: Kernels) -> None:
    module = kernels({"broken": "__kernel void broken(__global float* a) { a[0] = param_2; }", **ADD_ONE}, ["handle"])
    values = tensor(np.zeros(1, "float32"))
    said = r"(?s)OpenCL build error for device=0x[0-9a-f]+\nError: CL_BUILD_PROGRAM_FAILURE\n.*:1:\d+.*param_2"
    with pytest.raises(RuntimeError, match=said):
        module["broken"](values, 1)
    with pytest.raises(RuntimeError, match="OpenCL Error, code=-45: CL_INVALID_PROGRAM_EXECUTABLE"):
        module["broken"](values, 1)
    module["add_one"](values, 1)  # kernels are built one by one, so its neighbour is unharmed
    assert values.numpy()[0] == 1


def test_an_impossible_launch_is_refused(tensor: Any, kernels: Kernels) -> None:
    module = kernels(ADD_ONE, ["handle"], ("threadIdx.x",))
    with pytest.raises(RuntimeError, match="OpenCL Error, code=-54: CL_INVALID_WORK_GROUP_SIZE"):
        module["add_one"](tensor(np.zeros(1 << 20, "float32")), 1 << 20)


@of_ours
def test_wrong_arguments_are_refused(tensor: Any, kernels: Kernels) -> None:
    kernel = kernels(ADD_ONE, ["handle"])["add_one"]
    with pytest.raises(TypeError, match="takes 1 arguments and 1 extents, not 1"):
        kernel(1)
    with pytest.raises(TypeError, match="should be a pointer"):
        kernel(1, 1)
    with pytest.raises(TypeError, match="should be an integer"):
        kernel(tensor(np.zeros(1, "float32")), 1.5)


def test_an_unknown_launch_parameter_is_refused_when_its_kernel_is_looked_up(kernels: Kernels) -> None:
    module = kernels(ADD_ONE, ["handle"], ("warpIdx.x",))
    with pytest.raises(RuntimeError, match=r"Unknown threadscope warpIdx\.x"):
        module["add_one"]


def test_dynamic_shared_memory_is_asked_for_in_vain(tensor: Any, kernels: Kernels) -> None:
    values = tensor(np.zeros(1, "float32"))
    kernels(ADD_ONE, ["handle"], ("blockIdx.x", "tirx.use_dyn_shared_memory"))["add_one"](values, 1, 4096)
    assert values.numpy()[0] == 1


@pytest.mark.parametrize("source", [{}, {"other": "// Function: more\n__kernel void more() {}"}], ids=["none", "more"])
def test_kernels_and_their_sources_must_agree(kernels: Kernels, source: dict[str, str]) -> None:
    with pytest.raises(RuntimeError, match=r"no kernel delimiter|does not match the number of kernel functions"):
        kernels(source, ["handle"])


@of_ours
@few
@given(cut=st.integers(0, 200))
def test_a_damaged_module_is_refused(tvm: Any, cut: int) -> None:
    from tvm_ffi import get_global_func

    whole = module_bytes(ADD_ONE, ["handle"], ["blockIdx.x"])
    with pytest.raises(ValueError, match="OpenCL"):
        get_global_func("ffi.Module.load_from_bytes.opencl")(whole[: min(cut, len(whole) - 1)])


def test_a_compiled_kernel_computes_what_numpy_does(tvm: Any, device: Any, tensor: Any, tmp_path: Path) -> None:
    vm = virtual_machine(tvm, device, tmp_path)
    x = random((8, 8))
    np.testing.assert_allclose(vm["main"](tensor(x)).numpy(), np.maximum(x, 0) @ x, rtol=1e-5)


def test_a_compiled_kernel_reads_a_texture(tvm: Any, tensor: Any, tmp_path: Path) -> None:
    from tvm.s_tir import pipeline
    from tvm.s_tir.backend.adreno.pipeline import default_tir_pipeline
    from tvm.script import tirx as T
    from tvm.tirx.compilation_pipeline import register_tir_pipeline

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def double(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (3, 5, 7, 4), "float32", scope="global.texture")
        B = T.match_buffer(b, (3, 5, 7, 4), "float32")
        for i in T.thread_binding(3 * 5, thread="blockIdx.x"):
            for j in T.thread_binding(7, thread="threadIdx.x"):
                for c in T.vectorized(4):
                    B[i // 5, i % 5, j, c] = A[i // 5, i % 5, j, c] * T.float32(2)

    register_tir_pipeline(
        "adreno_runtime_test",
        lambda: (default_tir_pipeline(), pipeline.finalize_host_passes, pipeline.finalize_device_passes),
    )
    target = tvm.target.Target("qcom/adreno-opencl-texture", host="llvm")
    module = tvm.IRModule({"double": double.with_attr("global_symbol", "double")})
    built = tvm.tirx.build(module, target, pipeline="adreno_runtime_test")
    tvm.runtime.Executable(built).export_library(str(tmp_path / "lib.so"))
    x = random((3, 5, 7, 4))
    out = tensor(np.zeros_like(x))
    tvm.runtime.load_module(str(tmp_path / "lib.so"))["double"](tensor(x, "global.texture"), out)
    np.testing.assert_array_equal(out.numpy(), 2 * x)


def test_a_texture_inside_a_function_is_allocated_and_freed(tensor: Any, kernels: Kernels) -> None:
    """The calls that InjectTextureAlloc puts into compiled host code."""
    from tvm_ffi import get_global_func

    alloc, free = (get_global_func(f"device_api.opencl.{name}") for name in ("alloc_nd", "free_nd"))
    sides = (ctypes.c_int64 * 3)(9, 2, 3)
    opencl, texel_bits = 4, 128
    args = (opencl, 0, 2, 32, "global.texture", 3, ctypes.cast(sides, ctypes.c_void_p), texel_bits)
    texture = alloc(*args)
    source = """__kernel void sides(__read_only image2d_array_t image, __global int* out) {
      out[0] = get_image_width(image); out[1] = get_image_height(image); out[2] = get_image_array_size(image);
    }"""
    out = tensor(np.zeros(3, "int32"))
    kernels({"sides": source}, ["handle"] * 2)["sides"](texture, out, 1)
    np.testing.assert_array_equal(out.numpy(), list(sides))
    free(opencl, 0, "global.texture", texture)
    with pytest.raises(RuntimeError, match="Unsupported Channel Size: 32"):
        alloc(*args[:-1], 32)


def test_threads_share_a_kernel(tensor: Any, kernels: Kernels) -> None:
    kernel = kernels(ADD_ONE, ["handle"])["add_one"]
    buffers = [tensor(np.full(64, float(i), "float32")) for i in range(4)]
    failures: list[BaseException] = []

    def work(buffer: Any) -> None:
        try:
            for _ in range(200):
                kernel(buffer, 64)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(buffer,)) for buffer in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for i, buffer in enumerate(buffers):
        np.testing.assert_array_equal(buffer.numpy(), np.full(64, i + 200.0, "float32"))


# --- program binaries -------------------------------------------------------------------------------------------------


def binaries(prober: Path, loaded: Loaded) -> bytes:
    """The programs of a module; TVM's own function returns them as text."""
    from tvm_ffi import load_module

    return bytes(load_module(str(prober))["program_binaries"](loaded.module))


def test_binaries_replace_compiling(tensor: Any, kernels: Kernels, prober: Path) -> None:
    from tvm_ffi import load_module

    counting = load_module(str(prober))
    blob = binaries(prober, kernels(ADD_ONE, ["handle"]))
    assert counting["count_programs"]()
    before = json.loads(bytes(counting["programs"]()))
    module = kernels(ADD_ONE, ["handle"])
    module["opencl.SetPreCompiledPrograms"](blob)
    values = tensor(np.zeros(8, "float32"))
    module["add_one"](values, 8)
    np.testing.assert_array_equal(values.numpy(), np.ones(8))
    after = json.loads(bytes(counting["programs"]()))
    assert after["programs_from_binary"] - before["programs_from_binary"] == 1
    assert after["programs_from_source"] == before["programs_from_source"]


def test_foreign_binaries_change_nothing(tensor: Any, kernels: Kernels, prober: Path) -> None:
    module = kernels(ADD_ONE, ["handle"])
    foreign = kernels({"other": "__kernel void other(__global float* a) {}"}, ["handle"])
    module["opencl.SetPreCompiledPrograms"](binaries(prober, foreign))
    with pytest.raises(RuntimeError, match=r"code=-4[24]: CL_INVALID_(BINARY|PROGRAM)|OpenCL build error"):
        module["opencl.SetPreCompiledPrograms"](GARBAGE)
    values = tensor(np.zeros(1, "float32"))
    module["add_one"](values, 1)
    assert values.numpy()[0] == 1


@of_ours
def test_truncated_binaries_are_refused(kernels: Kernels) -> None:
    with pytest.raises(ValueError, match="truncated"):
        kernels(ADD_ONE, ["handle"])["opencl.SetPreCompiledPrograms"](GARBAGE[:-1])


# --- timers and what is left behind -----------------------------------------------------------------------------------


def start_timer(tvm: Any, device: Any) -> Any:
    from tvm_ffi import get_global_func

    return get_global_func("runtime.timer.opencl")(device)


@of_ours
def test_a_timed_loop_holds_no_events(tvm: Any, device: Any, tensor: Any, kernels: Kernels) -> None:
    module = kernels(ADD_ONE, ["handle"])
    values = tensor(np.zeros(4, "float32"))
    result = module.module.time_evaluator("add_one", device, number=2000, repeat=3)(pointer(values), 4)
    assert all(mean_s > 0 for mean_s in result.results)
    assert held()[0] == 0
    assert values.numpy()[0] == 1 + 3 * 2000  # one to warm up


def test_kernel_time_is_what_the_device_reports(tvm: Any, device: Any, tensor: Any, kernels: Kernels) -> None:
    source = """__kernel void spin(__global float* a, int rounds) {
      float x = a[0];
      for (int i = 0; i < rounds; ++i) x = x * 0.999f + 0.001f;
      a[0] = x;
    }"""
    module = kernels({"spin": source}, ["handle", "int32"])
    values = tensor(np.zeros(1, "float32"))

    def seconds(rounds: int) -> float:
        evaluator = module.module.time_evaluator("spin", device, number=1, repeat=5)
        return float(evaluator(pointer(values), rounds, 1).min)

    assert seconds(4_000_000) > 5 * seconds(4_000)


@of_ours
def test_a_thousand_inferences_leave_nothing_behind(tvm: Any, device: Any, tensor: Any, tmp_path: Path) -> None:
    vm = virtual_machine(tvm, device, tmp_path)
    vm.set_input("main", tensor(random((8, 8))))
    for _ in range(2):  # the first output still lives when the second is made
        vm.invoke_stateful("main")
    before = held()
    assert before[1] > 0
    for _ in range(1000):
        vm.invoke_stateful("main")
    assert held() == before


def virtual_machine(tvm: Any, device: Any, folder: Path) -> Any:
    """A Relax VM that runs `relu(x) @ x` from an exported library; the product's operand is a pooled tensor."""
    from tvm import relax
    from tvm.s_tir import dlight

    block = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((8, 8), "float32"))
    with block.function("main", [x]):
        with block.dataflow():
            out = block.emit_output(relax.op.matmul(block.emit(relax.op.nn.relu(x)), x))
        block.emit_func_output(out)
    target = tvm.target.Target("opencl", host="llvm")
    with target:
        mod = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(relax.transform.LegalizeOps()(block.get()))
        built = relax.build(mod, target)
    built.export_library(str(folder / "lib.so"))
    return relax.VirtualMachine(tvm.runtime.load_module(str(folder / "lib.so")), device)


# --- the device -------------------------------------------------------------------------------------------------------


def run(script: str, library: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, where OpenCL has not been used yet."""
    start = f"from pathlib import Path; from device_runner.runtimes.opencl import load; load(Path({str(library)!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", start + script, *args],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )


@of_ours
def test_an_unknown_device_lists_those_there_are(library: Path, prober: Path, device: Any) -> None:
    status = opencl_status(library, prober)
    assert status.chosen is not None
    done = run("import tvm; tvm.opencl().exist", library, **{DEVICE_VARIABLE: "adreno/740"})
    assert done.returncode != 0
    assert f"'{status.chosen.platform}/{status.chosen.name}'" in done.stderr


def test_without_a_driver_the_status_says_what_to_install(
    library: Path, prober: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    status = opencl_status(library, prober)
    assert status.chosen is None
    assert not status.devices
    assert "apt-get install" in status.problem


def test_a_driver_that_crashes_is_a_problem_and_not_our_end(
    library: Path, prober: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "driver.c").write_text("__attribute__((constructor)) static void crash(void) { __builtin_trap(); }")
    driver = tmp_path / "libdriver.so"
    subprocess.run(["g++", "-shared", "-o", driver, tmp_path / "driver.c"], check=True, timeout=LONG_S)
    (tmp_path / "broken.icd").write_text(f"{driver}\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    status = opencl_status(library, prober)
    assert status.chosen is None
    assert "broke the process" in status.problem


def test_the_warp_size_is_the_environments(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert device.warp_size == 1
    monkeypatch.setenv("TVM_OPENCL_WARP_SIZE", "64")
    assert device.warp_size == 64


@of_ours
@pytest.mark.parametrize("half", ["platform", "device", "both"])
def test_a_device_is_chosen_by_a_part_of_its_name_in_any_case(library: Path, prober: Path, half: str) -> None:
    status = opencl_status(library, prober)
    assert status.chosen is not None
    platform, device = status.chosen.platform[:8].upper(), status.chosen.name[:8].upper()
    wanted = {"platform": platform, "device": device, "both": f"{platform}/{device}"}[half]
    done = run("import tvm; print(tvm.opencl().device_name)", library, **{DEVICE_VARIABLE: wanted})
    assert done.stdout.strip() == status.chosen.name, done.stderr


@of_ours
def test_tensors_move_between_devices(library: Path, device: Any) -> None:
    script = f"""
import ctypes, sys, numpy as np, tvm, tvm_ffi
from typing import Any
{inspect.getsource(pointer)}
values = np.arange(24, dtype="float32").reshape(2, 3, 4)
first = tvm.runtime.tensor(values, tvm.opencl(0))
second = tvm.runtime.empty(values.shape, "float32", tvm.opencl(1), mem_scope="global.texture")
first.copyto(second)
assert (second.numpy() == values).all() and not tvm.opencl(2).exist
module = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.opencl")(bytes.fromhex(sys.argv[1]))
try:
    module["add_one"](pointer(second), 1)
except ValueError as error:
    print(error)
"""
    kernel = module_bytes(ADD_ONE, ["handle"], ["blockIdx.x"]).hex()
    done = run(script, library, kernel, POCL_DEVICES="basic pthread", **{DEVICE_VARIABLE: "pocl"})
    assert "argument 0 of kernel 'add_one' lies on another device" in done.stdout, done.stderr


def test_nothing_of_opencl_happens_before_the_first_use(library: Path, device: Any) -> None:
    """A process may fork after it has loaded the runtime, as TVM's RPC servers do."""
    script = """
import os
pid = os.fork()
if pid == 0:
    import tvm
    os._exit(0 if tvm.opencl().exist else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = run(script, library)
    assert done.stdout.strip() == "0", done.stderr
