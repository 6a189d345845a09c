"""Correctness tests in pytest: what `harness.pytest_plugin` is once a run asks for it."""

from harness.base.tool import Tool

TOOL = Tool("correctness", pytest_plugin="harness.tools.correctness.fixtures")
