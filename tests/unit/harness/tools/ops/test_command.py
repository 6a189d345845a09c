"""What `adreno-bench ops` does without a device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.base.failures import UsageError
from harness.cli import app

CELL = {
    "name": "add",
    "operator": "Add",
    "set": "sweep",
    "dtype": "float32",
    "path": "opencl",
    "as_shipped": False,
    "verdict": "wrong",
    "outcome": "wrong-result",
    "message": "off",
    "tvm": "0.27.0.post1",
    "device": "virtual",
}


def test_cells_that_were_printed_are_shown_again(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text(json.dumps([CELL]))
    done = CliRunner().invoke(app, ["ops", "--from", str(tmp_path / "cells.json")])
    assert done.exit_code == 3
    assert "Add" in done.stdout


def test_what_is_no_list_of_cells_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text("{}")
    done = CliRunner().invoke(app, ["ops", "--from", str(tmp_path / "cells.json")])
    assert isinstance(done.exception, UsageError)
    assert "cells.json is not what `adreno-bench ops --json` prints (it is no list)" in done.exception.message


@pytest.mark.parametrize("field", ["name", "dtype", "verdict", "outcome", "message", "device"])
def test_cells_that_lack_something_are_refused_with_the_command_that_writes_them(tmp_path: Path, field: str) -> None:
    (tmp_path / "cells.json").write_text(json.dumps([{name: CELL[name] for name in CELL if name != field}]))
    done = CliRunner().invoke(app, ["ops", "--from", str(tmp_path / "cells.json")])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message.endswith(f"cells.json is not what `adreno-bench ops --json` prints ('{field}')")


def test_a_cell_that_two_files_have_counts_once_and_the_last_one_holds(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps([CELL]))
    (tmp_path / "new.json").write_text(json.dumps([CELL | {"verdict": "right", "outcome": "ok", "message": ""}]))
    words = ["ops", "--from", str(tmp_path / "old.json"), "--from", str(tmp_path / "new.json"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert [cell["verdict"] for cell in json.loads(done.stdout)] == ["right"]
