"""List and remove what adreno-bench keeps on this host."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "cache",
    commands=(
        Command(
            "cache",
            "Show what adreno-bench keeps in its cache, or remove it.",
            "Set up",
            "harness.tools.cache.command:cache",
        ),
    ),
)
