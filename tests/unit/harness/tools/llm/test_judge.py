"""The judge is right: onnxruntime computes the same of a network that was written another way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from llama_onnx import LlamaGraph

from harness.tools.llm import judge
from harness.tools.llm.config import LLAMA_TINY, LlmConfig, RopeScaling
from harness.tools.llm.judge import UNIT, LlmTruth, Rounded, compute, divergence, frequencies, text
from harness.tools.llm.weights import FORMATS, SeededWeights, effective_tensor

SMALL = LlmConfig(2, 64, 6, 2, 32, 96, 128)


@pytest.mark.parametrize("form", ["float32", "q4f32_1"])
@pytest.mark.parametrize(
    "config",
    [
        LLAMA_TINY,
        SMALL,
        replace(SMALL, tied=True, qkv_bias=True, rope_theta=1e6),
        replace(SMALL, kv_heads=6, head_dim=16, output_bias=True, qkv_bias=True),
        replace(SMALL, kv_heads=1),
        replace(SMALL, tied=True, head_norms=True, rope_theta=1e6),
    ],
    ids=["tiny", "grouped", "qwen2", "every head its own", "a single head", "qwen3"],
)
def test_onnxruntime_gives_the_same_logits(config: LlmConfig, form: str) -> None:
    tensor = partial(effective_tensor, SeededWeights(config), FORMATS[form])
    tokens = text(config.vocabulary, 24)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = LlamaGraph(config, tensor, len(tokens)).model()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (other,) = session.run(["logits"], {"tokens": tokens.astype(np.int64)})
    mine = next(compute(config, tensor, tokens)).logits
    assert np.abs(mine - other).max() <= 2e-5 * np.abs(mine).max()
    assert divergence(other, mine) < 1e-8


def test_a_longer_text_changes_no_earlier_position() -> None:
    weights = SeededWeights(SMALL)
    long, short = (next(compute(SMALL, weights.tensor, text(SMALL.vocabulary, length))).logits for length in (20, 12))
    np.testing.assert_allclose(long[:12], short, rtol=1e-9, atol=1e-9)


def test_llama_3_slows_the_slow_rotations_alone() -> None:
    scaling = RopeScaling(8.0, 1.0, 4.0, 8192)
    config = replace(SMALL, head_dim=128, rope_theta=500_000.0)
    plain, scaled = frequencies(config), frequencies(replace(config, scaling=scaling))
    waves = 2 * math.pi / plain
    fast, slow = waves < 8192 / 4, waves > 8192
    np.testing.assert_allclose(scaled[fast], plain[fast])
    np.testing.assert_allclose(scaled[slow], plain[slow] / 8)
    between = ~fast & ~slow
    assert between.any()
    assert (scaled[between] < plain[between]).all()


def test_the_divergence_of_the_same_is_nothing_and_grows() -> None:
    logits = np.random.default_rng(0).standard_normal((4, 16)) * 3
    assert divergence(logits, logits) == 0
    assert divergence(logits + 0.1 * logits[::-1], logits) > divergence(logits + 0.01 * logits[::-1], logits) > 0


@pytest.mark.parametrize("form", ["float32", "float16", "q4f16_0"])
def test_rounding_is_allowed_and_no_more(form: str) -> None:
    truth = LlmTruth.compute(SeededWeights(SMALL), FORMATS[form], 16)
    logits = truth.reference.logits.astype(np.float32)
    assert truth.judge(logits, 0).right
    assert truth.judge(logits[8:], 8).right
    assert not truth.judge(logits[8:], 7).right
    assert truth.rounding < (1e-4 if form == "float32" else 0.1)


def test_a_truth_is_read_back_from_its_folder(tmp_path: Path) -> None:
    truth = truth_of(SMALL, "float16")[0]
    truth.write(tmp_path)
    read = LlmTruth.read(tmp_path, SMALL, None)
    logits = truth.reference.logits.astype(np.float32) * np.float32(1.001)
    assert read.multiple(logits, 0) == pytest.approx(truth.multiple(logits, 0), rel=1e-4)
    assert [spread.columns.shape for spread in read.spreads] == [(128,), (64,), (64,)]


def test_what_a_suite_tolerates_is_right() -> None:
    truth = replace(truth_of(SMALL, "float32")[0], stated_tolerance=1e-2)
    logits = truth.reference.logits.astype(np.float32)
    assert truth.judge(logits * np.float32(1.005), 0, [layer * 2 for layer in truth.reference.hidden]).right
    assert not truth.judge(logits * np.float32(1.02), 0).right


def test_angles_that_are_rounded_to_float32_are_right_however_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU has powers and products of float32: a frequency is off by two units in the last place."""
    config = LlmConfig(1, 64, 2, 1, 32, 64, 64)
    truth = LlmTruth.compute(SeededWeights(config), FORMATS["float32"], 1536)

    def rounded(config: LlmConfig) -> Any:
        return frequencies(config) * (1 + 2.0**-22)

    monkeypatch.setattr(judge, "frequencies", rounded)
    logits = next(compute(config, SeededWeights(config).tensor, text(config.vocabulary, 1536))).logits
    assert truth.judge(logits.astype(np.float32), 0).right
    assert truth.rounding < 1e-4


@cache
def truth_of(config: LlmConfig, form: str) -> tuple[LlmTruth, Callable[[str], Any]]:
    """The truth of a text of 32 tokens, and what gives the weights that it was computed with."""
    weights = SeededWeights(config)
    return LlmTruth.compute(weights, FORMATS[form], 32), partial(effective_tensor, weights, FORMATS[form])


FAULTS = [{"eps": 0.0}, {"layers": 1}, {"rope_theta": 2e4}, {"qkv_bias": False}, {"head_norms": False}]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("form", ["float32", "float16", "q4f16_0"])
def test_what_is_left_out_is_more_than_rounding(form: str, tied: bool, fault: dict[str, Any]) -> None:
    config = replace(SMALL, qkv_bias=True, head_norms=True, tied=tied)
    truth, effective = truth_of(config, form)
    logits = next(compute(replace(config, **fault), effective, text(SMALL.vocabulary, 32))).logits
    assert not truth.judge(logits.astype(np.float32), 0).right


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("form", ["float16", "q4f16_0"])
def test_a_norm_whose_squares_overflow_in_half_precision_is_wrong(
    form: str, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any trained network shows it; seeded weights have to."""
    config = replace(LLAMA_TINY, tied=tied)
    truth, effective = truth_of(config, form)

    def norm(self: Any, x: Any, name: str) -> Any:
        squares = np.minimum(x * x, np.finfo(np.float16).max)
        return x / np.sqrt(squares.mean(-1, keepdims=True) + config.eps) * self.weight(name)

    monkeypatch.setattr(judge._Network, "norm", norm)
    logits = next(compute(config, effective, text(config.vocabulary, 32))).logits
    assert not truth.judge(logits.astype(np.float32), 0).right


def rounded(form: str, draw: int) -> Any:
    """The answer of a library that rounds as its format does."""
    tensor = partial(effective_tensor, SeededWeights(LLAMA_TINY), FORMATS[form])
    arithmetic = Rounded(UNIT[FORMATS[form].dtype], 100 + draw)
    return list(compute(LLAMA_TINY, tensor, text(LLAMA_TINY.vocabulary, 32), [arithmetic]))[1]


@pytest.mark.parametrize("form", ["float32", "float16", "q4f16_0"])
@pytest.mark.parametrize("draw", range(3))
def test_a_library_that_rounds_as_its_format_does_is_right(form: str, draw: int) -> None:
    truth, answer = truth_of(LLAMA_TINY, form)[0], rounded(form, draw)
    for begin, end in ((0, 32), (0, 17), (30, 31)):
        logits = answer.logits[begin:end].astype(np.float32)
        assert truth.judge(logits, begin, [*answer.hidden[:, begin:end]]).right
        assert 0.5 < truth.multiple(logits, begin) < 2


def test_no_sum_is_off_by_more_than_one_that_is_added_in_half_precision() -> None:
    """Term after term, as a GPU adds: by two thirds of what is drawn, as errors are less than the largest one."""
    rng = np.random.default_rng(0)
    for terms in (64, 576, 2048):
        x, matrix = rng.standard_normal((16, terms)), rng.standard_normal((64, terms))
        x, matrix = (array.astype(np.float16).astype(np.float64) for array in (x, matrix))
        exact, added = x @ matrix.T, np.zeros((16, 64), np.float16)
        for column, row in zip(x.T, matrix.T, strict=True):
            added = (added + np.outer(column, row)).astype(np.float16)
        drawn = Rounded(UNIT["float16"], 0).product(x, matrix) - exact
        assert 0.5 < np.std(added - exact) / np.std(drawn) < 1


@pytest.mark.parametrize("form", ["float16", "q4f16_0"])
def test_a_column_of_a_product_that_is_two_fifths_off_is_wrong_in_half_precision(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No logit shows it, and no position: the column does, at most positions of what leaves the layer."""
    linear = judge._Network.linear

    def faulty(self: Any, x: Any, module: str, *, bias: bool = False) -> Any:
        product = linear(self, x, module, bias=bias)
        product[:, 3] *= 0.6 if module == "layers.1.down" else 1.0
        return product

    truth = truth_of(LLAMA_TINY, form)[0]
    monkeypatch.setattr(judge._Network, "linear", faulty)
    answer = rounded(form, 0)
    logits = answer.logits.astype(np.float32)
    assert truth.judge(logits, 0).right
    assert "in column 3 at most positions" in truth.judge(logits, 0, [*answer.hidden]).complaint


def test_the_first_wrong_layer_is_named() -> None:
    truth = LlmTruth.compute(SeededWeights(SMALL), FORMATS["float32"], 16)
    layers = [layer.astype(np.float32) for layer in truth.reference.hidden]
    logits = truth.reference.logits.astype(np.float32)
    assert truth.judge(logits, 0, layers).right
    layers[1] = layers[1] * 1.01
    assert truth.judge(logits, 0, layers).complaint.startswith("layer 1 ")


def test_the_first_wrong_layer_is_named_beside_a_token_with_hidden_numbers_hundreds_of_times_as_large() -> None:
    """As the first token's of trained networks are: of SmolLM2-135M 21,828, where the others' peak at 68."""
    truth = LlmTruth.compute(SeededWeights(SMALL), FORMATS["float32"], 16)
    truth.reference.hidden[:, 0] *= 1e4
    layers = [layer.astype(np.float32) for layer in truth.reference.hidden]
    logits = truth.reference.logits.astype(np.float32)
    layers[0][5] *= np.float32(1.001)
    assert truth.judge(logits, 0, layers).complaint.startswith("layer 0 ")
