"""A suite file to begin with: its text, and the networks in a folder that can be measured as they are."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "init",
    commands=(
        Command(
            "init",
            "Write a suite file with every key and a comment on each.",
            "Set up",
            "harness.tools.init.command:init",
        ),
    ),
)
