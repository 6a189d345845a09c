"""Builds on other hosts, through a Dask scheduler."""

from harness.base.tool import Tool

TOOL = Tool("builders", remote_builders="harness.tools.builders.dask_builders:DaskBuilders")
