"""Transforms as products give what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.spectra import write_spectra


def require_same(model: Any, x: Any, operator: str) -> None:
    plain, said = changed(model, write_spectra)
    assert operator not in kinds(plain)
    assert said == f"wrote 1 {operator} as products"
    wanted, got = answers(model, {"x": x})[0], answers(plain, {"x": x})[0]
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [None, 5, 7, 12])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((2, 7, 1), {}),
        ((2, 7, 1), {"onesided": 1}),
        ((2, 7, 2), {}),
        ((2, 7, 2), {"inverse": 1}),
        ((2, 7, 3, 2), {}),
        ((7, 4, 1), {"axis": 0}),
        ((2, 3, 7, 1), {"axis": 2}),
    ],
)
def test_a_dft_of_any_axis_length_and_direction(
    shape: tuple[int, ...], attributes: dict[str, int], length: int | None
) -> None:
    names = ["x", "length"] if length else ["x"]
    weights: dict[str, Any] = {"length": np.array(length)} if length else {}
    node = helper.make_node("DFT", names, ["y"], **attributes)
    require_same(network([node], {"x": shape}, opset=17, **weights), values(*shape), "DFT")


@pytest.mark.parametrize("axis", [1, -2])
def test_the_axis_is_an_input_in_newer_operator_sets(axis: int) -> None:
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], onesided=1)
    require_same(network([node], {"x": (2, 6, 1)}, opset=20, axis=np.array(axis)), values(2, 6, 1), "DFT")


@pytest.mark.parametrize("length", [None, 1, 6, 7, 12])
@pytest.mark.parametrize("parts", [1, 2])
def test_half_a_spectrum_becomes_real_numbers(parts: int, length: int | None) -> None:
    """As torch exports irfft. onnxruntime has no such DFT."""
    weights: dict[str, Any] = {"length": np.array(length)} if length else {}
    node = helper.make_node("DFT", ["x", *weights], ["y"], axis=1, inverse=1, onesided=1)
    x = values(2, 5, parts)
    plain, said = changed(network([node], {"x": x.shape}, opset=18, **weights), write_spectra)
    spectrum = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    wanted = np.fft.irfft(spectrum, length, axis=1)[..., None]
    assert said == "wrote 1 DFT as products"
    np.testing.assert_allclose(answers(plain, {"x": x})[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", [True, False])
@pytest.mark.parametrize("shape", [(2, 20), (2, 20, 1)])
@pytest.mark.parametrize("onesided", [0, 1])
def test_an_stft_is_a_convolution_along_the_signal(shape: tuple[int, ...], window: bool, onesided: int) -> None:
    weights: dict[str, Any] = {"step": np.array(3), "frame": np.array(8)}
    if window:
        weights["window"] = np.hanning(8).astype(np.float32)
    names = ["x", "step", "window" if window else "", "frame"]
    node = helper.make_node("STFT", names, ["y"], onesided=onesided)
    require_same(network([node], {"x": shape}, **weights), values(*shape), "STFT")


def test_a_transform_whose_length_an_input_decides_stays() -> None:
    node = helper.make_node("DFT", ["x"], ["y"])
    model = network([node], {"x": (2, "open", 1)})
    plain, said = changed(model, write_spectra)
    assert (kinds(plain), said) == (["DFT"], "")
