"""Kinds of jobs: each is a function that a worker process imports by its place, of the main job or of a tool."""

from __future__ import annotations

import inspect

from device_runner.names import load
from harness.base.tool import tools
from harness.compile.artifacts.kinds import KINDS, job_kind


def test_each_kind_names_a_function_of_a_job_and_a_folder_and_no_tool_takes_a_kind_of_the_main_job() -> None:
    added = [kind for tool in tools() for kind in tool.jobs]
    assert len({*added, *KINDS}) == len(added) + len(KINDS)
    for name in (*added, *KINDS):
        assert list(inspect.signature(load(job_kind(name).place)).parameters) == ["job", "out"]
