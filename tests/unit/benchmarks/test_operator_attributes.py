"""Every operator's network is one that ONNX takes and a judge computes, and a seed always draws the same."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from benchmarks.operator_attributes import COUNT, LACKING, OPERATORS, RECORDS, main, network
from harness.base.suite import load_suite
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.spec import seeded_inputs
from harness.compile.oracle.truth import first_answer, judges_of

DEFORMED = "deform_conv"
"""Only ONNX's reference in Python computes it, in seconds."""


@pytest.mark.parametrize("name", OPERATORS)
def test_a_drawn_network_is_valid_and_has_an_answer(name: str) -> None:
    for seed in range(1 if name == DEFORMED else 3):
        require_valid(network(name, seed))


@pytest.mark.rest
@pytest.mark.parametrize("seed", [1, 2])
def test_others_of_deformed_convolutions_are_valid_and_have_an_answer(seed: int) -> None:
    require_valid(network(DEFORMED, seed))


def require_valid(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.input
    assert first_answer(judges_of(model), seeded_inputs(input_specs(model), 0)).outputs


def test_a_seed_draws_the_same_files_and_another_seed_draws_others(tmp_path: Path) -> None:
    files = []
    for folder, seed in (("one", "7"), ("same", "7"), ("other", "8")):
        main(str(tmp_path / folder), "--seed", seed, "--count", "20")
        files.append([path.read_bytes() for path in sorted((tmp_path / folder).glob("*.onnx"))])
    one, same, other = files
    assert len(one) == 20
    assert one == same
    assert not set(one) & set(other)


def test_named_operators_take_turns(tmp_path: Path) -> None:
    main(str(tmp_path), "resize", "attention", "--count", "4")
    names = [path.stem.rpartition("_")[0].rpartition("_")[0] for path in tmp_path.glob("*.onnx")]
    assert sorted(names) == ["attention", "attention", "resize", "resize"]
    assert len(load_suite(tmp_path / "adreno-bench.toml").models) == 4


def test_a_night_takes_every_operator_at_least_once() -> None:
    assert len(OPERATORS) <= COUNT


@pytest.mark.parametrize(
    ("name", "outcome", "message", "code"),
    [
        ("resize", "ok", "", 0),
        ("resize", "wrong-result", "output 0 is off", 1),
        ("resize", "compile-error", "TVM's ONNX importer misreads Resize 'r': it leaves out antialias", 0),
        ("resize", "compile-error", "TVM failed to import the model", 1),
        ("det", "compile-error", "TVM's ONNX importer does not know Det", 0),
        ("det", "infra-error", "", 1),
    ],
)
def test_results_that_are_news_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, outcome: str, message: str, code: int
) -> None:
    record = {"case": f"{name}_7_0-opencl", "model": f"{name}_7_0", "outcome": outcome, "message": message}
    (tmp_path / RECORDS).write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert main(str(tmp_path), "--results") == code
    assert name in capsys.readouterr().out


def test_every_operator_that_tvm_lacks_is_drawn() -> None:
    assert set(LACKING) < set(OPERATORS)
