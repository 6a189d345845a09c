"""Builds on other hosts, through a Dask scheduler, and the store that hosts share."""

from harness.base.tool import Tool

TOOL = Tool(
    "builders",
    shared_store="harness.tools.builders.shared_store:ObjectStore",
    remote_builders="harness.tools.builders.dask_builders:DaskBuilders",
)
