"""Devices of this host, offered to other hosts."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "fleet",
    commands=(
        Command(
            "fleet",
            "Offer the devices of this host to other hosts.",
            "Devices",
            "harness.tools.fleet.command:fleet",
        ),
    ),
)
