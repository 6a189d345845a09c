"""What a job of GitHub Actions tells the pull request: one comment, edited in place, and annotations."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "github",
    commands=(
        Command(
            "github",
            "Report a job's results on its pull request: comment and annotations.",
            "Judge",
            "harness.tools.github.command:github",
        ),
    ),
)
