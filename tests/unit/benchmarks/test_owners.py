"""One cause has one owner: the table names the cases in which two paths disagree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.owners import Finding, main, rows
from harness.base.outcome import Outcome


def finding(case: str, path: str, outcome: Outcome, message: str = "") -> Finding:
    return Finding(case, path, outcome, message, f"{outcome.owner.value} ({outcome.value})")


def test_cases_of_one_cause_stand_in_one_row_and_a_right_path_names_no_owner() -> None:
    (row,) = rows(
        finding(case, path, Outcome.COMPILE_ERROR, f"TVM's ONNX importer does not know {case} (y)")
        for case in ("det", "celu")
        for path in ("texture", "clml")
    )
    assert row.columns[:3] == ("TVM's ONNX importer does not know", 2, "det")
    assert row.columns[3:] == ("-", "compiler (compile-error)", "compiler (compile-error)")
    assert rows([finding("relu", "opencl", Outcome.OK)]) == []


@pytest.mark.parametrize(("on_texture", "code"), [(Outcome.COMPILE_ERROR, 1), (Outcome.HANG, 0)])
def test_two_owners_of_one_case_fail(tmp_path: Path, on_texture: Outcome, code: int) -> None:
    ends = {"opencl": Outcome.RUNTIME_ERROR, "texture": on_texture}
    records = [
        {"case": f"net-{path}-float32-untuned", "outcome": end.value, "message": "x"} for path, end in ends.items()
    ]
    (tmp_path / "net.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert main([str(tmp_path / "net.jsonl")]) == code


def test_the_owner_is_the_one_that_a_witness_named(tmp_path: Path) -> None:
    cells = [
        {"name": "shrink", "path": path, "outcome": "wrong-result", "message": "output 0 is off by 1", "owner": owner}
        for path, owner in (("opencl", "importer"), ("texture", "path"))
    ]
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    assert main([str(tmp_path / "cells.json")]) == 1
    cells[1]["owner"] = "importer"
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    assert main([str(tmp_path / "cells.json")]) == 0
