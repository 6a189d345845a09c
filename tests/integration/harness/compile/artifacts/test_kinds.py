"""Kinds of jobs: each is a function that a worker process imports by its place, of the main job or of a tool."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.plan import Job
from harness.base.suite import Limits
from harness.base.tool import VARIABLE, tools
from harness.compile.artifacts.artifact import Answers
from harness.compile.artifacts.keys import module_version, pipeline_version
from harness.compile.artifacts.pool import Builder

TOOL = """
from harness.base.tool import JobKind, Tool
TOOL = Tool("echo", jobs={"echo": JobKind("echo_tool.work:echo", author="the echo")})
"""
WORK = """
from echo_tool.words import WORD
def echo(job, out):
    (out / "echo").write_text(job["word"] + WORD)
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a tool with a kind of job into a folder outside the package, and yield that."""
    folder = tmp_path / "outside" / "echo_tool"
    folder.mkdir(parents=True)
    for name, text in (("__init__", TOOL), ("work", WORK), ("words", "WORD = '!'\n")):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    monkeypatch.setenv(VARIABLE, "echo_tool")
    for cached in (tools, module_version):
        cached.cache_clear()
    yield folder
    for name in [name for name in sys.modules if name.startswith("echo_tool")]:
        del sys.modules[name]
    for cached in (tools, module_version):
        cached.cache_clear()


def test_a_worker_does_the_job_of_a_tool_outside_the_package(outside: Path, tmp_path: Path) -> None:
    job = Job("echo", "a" * 16, "an echo", {"word": "hello"})
    with Builder(tmp_path / "store", Limits()) as builder:
        made = builder.build([job])[job.key]
    assert isinstance(made, Answers)
    assert (made.folder / "echo").read_text() == "hello!"


def test_an_edit_of_a_tool_changes_the_keys_of_its_jobs_and_none_of_the_main_job(outside: Path) -> None:
    before, pipeline = module_version("echo_tool.work"), pipeline_version()
    (outside / "words.py").write_text("WORD = '?'\n")
    module_version.cache_clear()
    pipeline_version.cache_clear()
    assert module_version("echo_tool.work") != before
    assert pipeline_version() == pipeline
