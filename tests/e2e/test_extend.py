"""The examples of docs/how-to/extend.md do what the page says, each by its own words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from places import ROOT

pytestmark = [pytest.mark.rest, pytest.mark.slow, pytest.mark.device, pytest.mark.usefixtures("warm_driver")]

PAGE = (ROOT / "docs/how-to/extend.md").read_text("utf-8")
BLOCK = re.compile(r"^```(python|diff)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {name: text for kind, name, text in BLOCK.findall(PAGE) if kind == "python"}
EDITS = {name: text for kind, name, text in BLOCK.findall(PAGE) if kind == "diff"}


def bench(folder: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What the program prints, started in a folder that has its own sources or a tool."""
    done = subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def edited(text: str, edit: str) -> str:
    """The text of a file after an edit of the page: lines that go, and those that come in their place or first."""
    old = "\n".join(line[1:] for line in edit.splitlines() if line.startswith("-"))
    first, _, new = edit.partition(f"-{old}\n")
    assert old in text
    text = text.replace(old, "\n".join(line[1:] for line in new.splitlines()))
    imports = "".join(f"{line[1:]}\n" for line in first.splitlines())
    return text.replace("\nfrom harness.", f"\n{imports}from harness.", 1)


def test_a_tool_outside_the_package_adds_to_every_part_without_an_edit(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "again_tool.py").write_text(FILES["again_tool.py"], "utf-8")
    environment = {"ADRENO_BENCH_TOOLS": "again_tool", "ADRENO_BENCH_CACHE": str(cache)}
    records, page = tmp_path / "again.jsonl", tmp_path / "again.html"
    case = ("--model", "tiny", "--quick", "--case", "*-opencl-float32-untuned")
    bench(tmp_path, environment, "run", *case, "--records", str(records))
    record = json.loads(records.read_text("utf-8"))
    assert record["parts"]["again"] == {"same": True}
    said = bench(tmp_path, environment, "again", "--records", str(records))
    assert said.strip() == "tiny-opencl-float32-untuned: the same answer"
    bench(tmp_path, environment, "report", "--records", str(records), "--out", str(page))
    assert "It gave the same answer again." in page.read_text("utf-8")
    assert re.search(r"^ok +numpy ", bench(tmp_path, environment, "doctor"), re.MULTILINE)
    assert " again " in bench(tmp_path, environment, "--help")
    without = bench(tmp_path, {"ADRENO_BENCH_CACHE": str(cache)}, "show", "--records", str(records), "--json", "--all")
    assert json.loads(without)[0]["parts"]["again"] == {"same": True}, "a record keeps the part of a tool that is gone"


@pytest.mark.long
def test_a_path_and_a_network_are_a_file_and_a_line_each(cache: Path, tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "harness", "device_runner"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, tracked.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name, text in FILES.items():
        if name.startswith("harness/"):
            (tmp_path / name).write_text(text, "utf-8")
    for name, edit in EDITS.items():
        (tmp_path / name).write_text(edited((tmp_path / name).read_text("utf-8"), edit), "utf-8")
    (tmp_path / "adreno-bench.toml").write_text(
        'models = ["two_layers"]\npaths = ["texture", "small_images"]\n', "utf-8"
    )
    said = bench(tmp_path, {"ADRENO_BENCH_CACHE": str(cache)}, "run", "--quick", "--case", "*-float32-untuned")
    rows = [line.split() for line in said.splitlines() if line.startswith("two_layers ")]
    assert [(row[1], row[4].rstrip(",")) for row in rows] == [("texture", "ok"), ("small_images", "ok")]
