"""What this machine or a device has and lacks, and how to fix what is missing."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "doctor",
    commands=(
        Command(
            "doctor",
            "Check what a run needs, and show how to fix what is missing.",
            "Devices",
            "harness.tools.doctor.command:doctor",
        ),
    ),
)
