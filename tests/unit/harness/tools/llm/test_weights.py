"""4-bit weights are packed and unpacked without loss beyond half a step, whatever the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harness.base.failures import ModelError
from harness.tools.llm.config import LLAMA_TINY, LlmConfig
from harness.tools.llm.weights import (
    FORMATS,
    GROUP,
    SeededWeights,
    effective_tensor,
    library_tensors,
    pack,
    require_sizes,
    unpack,
    weight_sizes,
)

NUMBERS = st.floats(-1e3, 1e3, width=32)


@given(arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 3).map(lambda n: n * GROUP)), elements=NUMBERS))
def test_a_number_moves_by_half_a_step_at_most(matrix: Any) -> None:
    words, scale = pack(matrix, "float32")
    assert words.shape == (matrix.shape[0], matrix.shape[1] // 8)
    step: Any = np.repeat(scale, GROUP, axis=1)
    assert (np.abs(unpack(words, scale) - matrix) <= step * 0.5001 + 1e-30).all()


@given(arrays(np.uint32, (2, 8), elements=st.integers(0, 14).map(lambda n: n * 0x11111111)))
def test_packing_what_was_unpacked_changes_nothing(words: Any) -> None:
    words[:, ::4] = 0xEEEEEEEE  # the largest number of each group, which decides the scale
    scale = np.ones((2, 2), np.float32)
    again, same = pack(unpack(words, scale), "float32")
    np.testing.assert_array_equal(again, words)
    np.testing.assert_array_equal(same, scale)


def test_the_first_number_lies_in_the_lowest_bits() -> None:
    row = np.zeros((1, GROUP), np.float32)
    row[0, 0], row[0, 1] = 7, -7
    words, scale = pack(row, "float16")
    assert words[0, 0] == 0x7777770E
    assert scale[0, 0] == 1


def test_kn_is_nk_transposed() -> None:
    weights = SeededWeights(LLAMA_TINY)
    nk = dict(library_tensors(weights, FORMATS["q4f16_1"]))
    kn = dict(library_tensors(weights, FORMATS["q4f16_0"]))
    np.testing.assert_array_equal(nk["layers.1.down.words"].T, kn["layers.1.down.words"])
    np.testing.assert_array_equal(nk["embed.words"], kn["embed.words"])


@pytest.mark.parametrize("name", FORMATS)
def test_effective_weights_are_near_the_given_ones(name: str) -> None:
    weights, form = SeededWeights(LLAMA_TINY), FORMATS[name]
    given_: Any = weights.tensor("layers.0.qkv.weight")
    effective: Any = effective_tensor(weights, form, "layers.0.qkv.weight")
    assert np.abs(given_ - effective).max() <= np.abs(given_).max() * (0.08 if form.layout else 1e-3)


def test_seeded_weights_have_outliers_and_are_the_same_in_every_run() -> None:
    norm = SeededWeights(LLAMA_TINY).tensor("norm.weight")
    assert norm.max() > 4
    np.testing.assert_array_equal(norm, SeededWeights(LLAMA_TINY).tensor("norm.weight"))


def test_rows_that_are_no_multiple_of_a_group_are_refused() -> None:
    config = LlmConfig(1, 80, 1, 1, 80, 96, 64)
    require_sizes(config, FORMATS["float16"])
    with pytest.raises(ModelError, match="multiple of 32"):
        require_sizes(config, FORMATS["q4f16_0"])


@pytest.mark.parametrize(("size", "built"), [(2, ""), (4, "16"), (20, "16"), (100, "16"), (8, "16 32"), (80, "16 32")])
def test_heads_that_tvm_has_no_kernel_for_are_refused(size: int, built: str) -> None:
    config = LlmConfig(1, 64, 2, 1, size, 64, 64)
    for bits, least in (("16", 4), ("32", 8)):
        if bits in built.split():
            require_sizes(config, FORMATS[f"float{bits}"])
            continue
        with pytest.raises(ModelError, match=f"float{bits} for heads of {size}: .* a multiple of {least} n") as caught:
            require_sizes(config, FORMATS[f"float{bits}"])
        assert ("half precision" in caught.value.hint) is bool(built)


def test_the_size_of_weights_counts_words_and_scales() -> None:
    config = LLAMA_TINY
    sizes = {}
    for form in FORMATS.values():
        tensors = library_tensors(SeededWeights(config), form)
        parameters = [(name, array.shape, str(array.dtype)) for name, array in tensors]
        sizes[form.name] = sum(weight_sizes(parameters))
    assert sizes["float32"] == 2 * sizes["float16"] == 4 * config.parameters
    assert 0.14 < sizes["q4f32_1"] / sizes["float32"] < 0.17
