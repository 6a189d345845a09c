"""Sustained runs: a case that is kept running without a pause, and what heat makes of its pace."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "sustain",
    commands=(
        Command(
            "sustained",
            "Show sustained runs: the first and the last minute, and when heat slowed the phone down.",
            "Explain",
            "harness.tools.sustain.command:sustained",
            formerly="show --sustained",
        ),
    ),
    probes=("harness.tools.sustain.measure:make_probe",),
    record_parts={"sustained": "harness.tools.sustain.part:Sustained"},
    part_views={"sustained": "harness.tools.sustain.view:VIEW"},
)
