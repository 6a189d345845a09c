"""Two models, sets of options, releases, commits or records files, side by side."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "ab",
    commands=(
        Command(
            "compare",
            "Compare two models, sets of options, releases, commits or records files.",
            "Judge",
            "harness.tools.ab.command:compare",
        ),
    ),
    side_by_side="harness.tools.ab.side_by_side:measure_side_by_side",
)
