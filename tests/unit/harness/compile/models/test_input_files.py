"""Inputs that a user gives: read with suspicion, every defect one line."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity
from harness.base.failures import ModelError
from harness.base.suite import load_suite
from harness.compile.artifacts.planner import check, model_digest, plan_case
from harness.compile.models.input_files import load_inputs, read_header
from harness.compile.models.spec import InputSpec
from harness.tools.zoo import tiny

SPECS = (InputSpec("image", (1, 2, 3)), InputSpec("gpu_0/ids", (4,), "int64"))
IMAGE = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
IDS = np.arange(4, dtype=np.int64)


def saved(folder: Path, **arrays: Any) -> Path:
    file = folder / "inputs.npz"
    np.savez(file, **{"image": IMAGE, "gpu_0/ids": IDS, **arrays})
    return file


def test_the_arrays_come_in_the_models_order(tmp_path: Path) -> None:
    file = tmp_path / "inputs.npz"
    arrays: dict[str, Any] = {"gpu_0/ids": IDS, "image": np.asfortranarray(IMAGE)}
    np.savez_compressed(file, **arrays)
    read = load_inputs(file, SPECS)
    assert list(read) == ["image", "gpu_0/ids"]
    np.testing.assert_array_equal(read["image"], IMAGE)
    assert read["image"].flags.c_contiguous
    np.testing.assert_array_equal(read["gpu_0/ids"], IDS)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"image": IMAGE[0]},
            r"'image' is float32 \[2, 3\], and the model takes float32 \[1, 2, 3\]: "
            r"save it as array.astype\('float32'\).reshape\(\[1, 2, 3\]\)",
        ),
        ({"image": IMAGE[:, 1:]}, "save an array of 6 numbers, not of 3"),
        ({"image": IMAGE.astype(np.float64)}, r"'image' is float64 .* the model takes float32"),
        ({"image": IMAGE.astype(">f4")}, r"'image' is >f4"),
        ({"image": IMAGE.astype(np.complex64)}, r"'image' is complex64 .*: inputs are real numbers"),
        ({"image": IMAGE * np.nan}, "'image' holds NaN or infinity"),
        ({"image": np.array([[[None] * 3] * 2])}, r"'image' is object"),
        ({"imgae": IMAGE}, "holds 'imgae', and the model has no such input: did you mean 'image'"),
        ({"image": np.zeros(1 << 19, np.float64)}, "is too large: .* the model's inputs take 56"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load_inputs(saved(tmp_path, **arrays), SPECS)
    assert "\n" not in str(caught.value)


def test_an_input_that_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "inputs.npz"
    np.savez(file, image=IMAGE)
    with pytest.raises(ModelError, match="has no array for the input 'gpu_0/ids': it holds image"):
        load_inputs(file, SPECS)
    np.savez(file)
    with pytest.raises(ModelError, match="has no array for the input 'image': it holds no arrays"):
        load_inputs(file, SPECS)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"does not exist: correct `inputs`"):
        load_inputs(tmp_path / "none.npz", SPECS)
    with pytest.raises(ModelError, match="is not a file"):
        load_inputs(tmp_path, SPECS)
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ModelError, match=r"is not an .npz file"):
        load_inputs(tmp_path / "text.npz", SPECS)


def test_a_header_that_lies_costs_no_memory(tmp_path: Path) -> None:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})
    file = tmp_path / "inputs.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("image.npy", head.getvalue())
    with pytest.raises(ModelError, match=r"'image' is float32 \[1099511627776\]"):
        load_inputs(file, SPECS[:1])


def test_an_array_that_is_cut_short(tmp_path: Path) -> None:
    whole = io.BytesIO()
    np.lib.format.write_array(whole, IMAGE)
    file = tmp_path / "inputs.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("image.npy", whole.getvalue()[:-4])
    with pytest.raises(ModelError, match="'image' is cut short: 20 of 24 bytes"):
        load_inputs(file, SPECS[:1])


@given(at=st.integers(0, 700), byte=st.integers(0, 255), keep=st.integers(0, 800))
def test_damage_is_a_model_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, keep: int
) -> None:
    file = saved(tmp_path_factory.mktemp("damage"))
    data = bytearray(file.read_bytes())
    data[at % len(data)] = byte
    file.write_bytes(data[:keep] if keep < 700 else data)
    with contextlib.suppress(ModelError):
        load_inputs(file, SPECS)


def test_a_suite_names_the_file_and_another_content_is_another_oracle(tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(tiny.build().to_bytes())
    suite_file = tmp_path / "suite.toml"
    suite_file.write_text('models = [{ onnx = "tiny.onnx", inputs = "x.npz" }]\npaths = ["opencl"]\n')
    (shape,) = [(1, 3, 32, 32)]
    keys = set()
    for number in range(2):
        np.savez(tmp_path / "x.npz", input=np.full(shape, number, np.float32))
        suite = load_suite(suite_file)
        check(suite, suite.cases, tmp_path)
        plan = plan_case(suite, suite.cases[0], Identity("virtual", "v"), tmp_path)
        assert plan.oracle.payload["inputs"] == str(tmp_path / "x.npz")
        keys.add((plan.oracle.key, plan.compile.key, model_digest(suite, "tiny", tmp_path)))
    assert all(len(set(parts)) == 2 for parts in zip(*keys, strict=True))


def test_a_file_that_does_not_fit_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(tiny.build().to_bytes())
    np.savez(tmp_path / "x.npz", input=np.zeros((1, 3, 8, 8), np.float32))
    suite_file = tmp_path / "suite.toml"
    suite_file.write_text('models = [{ onnx = "tiny.onnx", inputs = "x.npz" }]\npaths = ["opencl"]\n')
    suite = load_suite(suite_file)
    with pytest.raises(ModelError, match=r"'input' is float32 \[1, 3, 8, 8\], and the model takes float32"):
        check(suite, suite.cases, tmp_path)


def test_a_file_of_numpys_second_version_is_read(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as stream:
        np.lib.format.write_array(stream, np.ones((2, 3), np.float32), version=(2, 0))
    with (tmp_path / "x.npy").open("rb") as stream:
        assert read_header(tmp_path / "x.npy", stream, "x")[0] == (2, 3)
