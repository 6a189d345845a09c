"""torch as the judge of its own programs; skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compile.oracle.judge import NoAnswer, Refusal
from harness.tools.torch.judge import TorchProgram

torch: Any = pytest.importorskip("torch")


def saved(net: Any, file: Path, *given: Any, **named: Any) -> Path:
    """A network as torch.export.save writes it."""
    torch.export.save(torch.export.export(net.eval(), given, named), file)
    return file


class Mix(torch.nn.Module):  # type: ignore[misc]
    """Takes an argument by its name, and gives a tree of tensors."""

    def forward(self, a: Any, b: Any, *, k: Any) -> Any:
        """Three numbers of three."""
        return {"sum": a + b * k, "rest": (a - b, k.abs())}


def test_torch_computes_its_own_program_and_its_outputs_are_in_the_programs_order(tmp_path: Path) -> None:
    a, b, k = (np.array([number, -number], np.float32) for number in (1.0, 2.0, 3.0))
    judge = TorchProgram(
        saved(Mix(), tmp_path / "mix.pt2", *map(torch.from_numpy, (a, b)), k=torch.from_numpy(k)), trust=False
    )
    outputs = judge.ask({"a": a, "b": b, "k": k})
    for got, want in zip(outputs, (a + b * k, a - b, abs(k)), strict=True):
        np.testing.assert_array_equal(got, want)
    assert judge.name == f"torch {torch.__version__}"


def test_an_index_beyond_its_table_is_refused(tmp_path: Path) -> None:
    file = saved(torch.nn.Embedding(50, 4), tmp_path / "table.pt2", torch.zeros(1, 3, dtype=torch.int64))
    judge = TorchProgram(file, trust=False)
    judge.ask({"ids": np.full((1, 3), 49)})
    with pytest.raises(Refusal, match="index out of range"):
        judge.ask({"ids": np.full((1, 3), 100_000)})


def test_a_resize_of_torchs_own_is_computed_as_torch_does(tmp_path: Path) -> None:
    net = torch.nn.Upsample(scale_factor=1.7, mode="bilinear")
    x = np.random.default_rng(0).random((1, 1, 7, 9), np.float32)
    (got,) = TorchProgram(saved(net, tmp_path / "up.pt2", torch.from_numpy(x)), trust=False).ask({"x": x})
    np.testing.assert_array_equal(got, net(torch.from_numpy(x)).numpy())


def test_what_is_no_program_has_no_answer(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(b"no archive")
    with pytest.raises(NoAnswer, match="torch: "):
        TorchProgram(tmp_path / "net.pt2", trust=False)
