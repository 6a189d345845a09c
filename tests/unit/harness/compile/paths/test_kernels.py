"""OpenCL source taken apart and checked without a device."""

from __future__ import annotations

import pytest

from harness.base.failures import InvalidKernel
from harness.compile.paths.kernels import check_images, kernels

PLAIN = "__kernel void plain(__global float* restrict a) {\n  a[0] = 1.0f;\n}\n"
GOOD = """// Function: copy
__kernel void copy(__read_only image2d_array_t in, __write_only image2d_array_t out);
__kernel void plain(__global float* restrict a);
__kernel void copy(__read_only image2d_array_t in, __write_only image2d_array_t out) {
  float4 v = as_float4(READ_IMAGEF(in, sampler, (int4)(0, 0, 0, 0)));
  write_imagef(out, (int4)(0, 0, 0, 0), v);
}
"""


def test_kernels_are_found_once_with_their_own_bodies() -> None:
    copy, plain = kernels(GOOD + "\n// Function: plain\n" + PLAIN)
    assert (copy.name, plain.name) == ("copy", "plain")
    assert copy.images == {"in": "read_only", "out": "write_only"}
    assert plain.images == {}
    assert "write_imagef" in copy.body
    assert "write_imagef" not in plain.body


def test_local_memory_is_that_of_all_arrays_of_a_work_group() -> None:
    arrays = "  __local float a[100];\n  __local float4 b[2];\n  __local half c[8];\n  float d[50];\n"
    (kernel,) = kernels(PLAIN.replace("  a[0]", f"{arrays}  a[0]"))
    assert kernel.local_bytes == 400 + 32 + 16


def test_attributes_do_not_hide_a_kernel() -> None:
    source = "__kernel void __attribute__((reqd_work_group_size(4, 1, 1))) sized(__global float* a) { a[0] = 1; }"
    assert [kernel.name for kernel in kernels(source)] == ["sized"]


def test_kernels_that_access_images_as_declared_are_good() -> None:
    check_images(GOOD + PLAIN)
    check_images("")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("__write_only image2d_array_t out) {", "image2d_array_t out) {", "does not say whether"),
        ("READ_IMAGEF(in,", "READ_IMAGEF(other,", "takes the image in as read_only"),
        ("write_imagef(out,", "write_imagef(in,", "takes the image out as write_only"),
        (
            "__read_only image2d_array_t in, __write_only image2d_array_t out) {",
            "__write_only image2d_array_t in, __write_only image2d_array_t out) {",
            "takes the image in as write_only",
        ),
    ],
)
def test_kernels_that_no_device_could_run_are_named(old: str, new: str, complaint: str) -> None:
    broken = GOOD.replace(old, new)
    assert broken != GOOD
    with pytest.raises(InvalidKernel, match=f"kernel copy {complaint}") as caught:
        check_images(PLAIN + broken)
    assert caught.value.outcome == "compile-error"
    assert "__kernel void copy" in caught.value.evidence


def test_half_precision_is_seen_in_parameters_and_bodies_and_not_in_what_follows() -> None:
    takes = "__kernel void takes(__global half* restrict a) {\n  a[0] = (half)1.0f;\n}\n"
    reads = "__kernel void reads(__read_only image2d_array_t in) {\n  half4 v = READ_IMAGEH(in, s, p);\n}\n"
    inside = "__kernel void inside(__global float* a) {\n  a[0] = convert_float(convert_half_rte(a[1]));\n}\n"
    loads = "__kernel void loads(__global float* a) {\n  a[0] = vload_half(0, (__global ushort*)a);\n}\n"
    pragma = '#error "Half precision floating point not supported"\n'
    found = {
        kernel.name: kernel.half
        for kernel in kernels(PLAIN + pragma + takes.replace(" {", ";", 1) + takes + reads + inside + loads)
    }
    assert found == {"plain": False, "takes": True, "reads": True, "inside": True, "loads": False}


def test_double_precision_is_seen_in_kernels_alone() -> None:
    guard = "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
    takes = "__kernel void takes(__global double* restrict a) {\n  a[0] = 1.0;\n}\n"
    vectors = "__kernel void vectors(__global float* a) {\n  double4 v = 0;\n  redouble(a);\n}\n"
    found = {kernel.name: kernel.double for kernel in kernels(guard + PLAIN + takes + vectors)}
    assert [found.pop("takes"), found.pop("vectors"), *found.values()] == [True, True, False]
