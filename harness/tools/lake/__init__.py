"""Records of many hosts and nights, in Parquet, asked with DuckDB."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "lake",
    commands=(
        Command(
            "records",
            "Keep the records of many runs and hosts in Parquet.",
            "Explain",
            "harness.tools.lake.command:records",
        ),
    ),
)
