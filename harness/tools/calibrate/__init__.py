"""The smallest change that a gate can detect, learned by running artifacts against themselves."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "calibrate",
    commands=(
        Command(
            "calibrate",
            "Measure the noise of each case: the smallest change that a gate can detect.",
            "Judge",
            "harness.tools.calibrate.command:calibrate",
        ),
    ),
)
