"""The devices there are: of this host, and offered to other hosts."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "fleet",
    remote_devices="harness.tools.fleet.remote:RemoteDevices.at",
    commands=(
        Command(
            "devices",
            "List the virtual phone, the OpenCL device of this host, and every phone.",
            "Devices",
            "harness.tools.fleet.devices_command:devices",
        ),
        Command(
            "fleet",
            "Offer the devices of this host to other hosts.",
            "Devices",
            "harness.tools.fleet.command:fleet",
        ),
    ),
)
