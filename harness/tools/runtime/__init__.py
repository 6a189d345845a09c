"""TVM's runtimes for phones and boards that a person built, kept on this host."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "runtime",
    commands=(
        Command(
            "runtime",
            "Keep TVM's runtime for phones and boards on this host.",
            "Devices",
            "harness.tools.runtime.command:runtime",
        ),
    ),
)
