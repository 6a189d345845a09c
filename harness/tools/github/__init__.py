"""What a job of GitHub Actions tells the pull request: one comment, edited in place, and annotations."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "github",
    commands=(
        Command(
            "github",
            "Tell a pull request what a job found: one comment, and annotations.",
            "Judge",
            "harness.tools.github.command:github",
        ),
    ),
)
