"""Where the time of an inference goes, by operator, and why two cases or builds differ."""

from harness.base.tool import Command, Tool

TOOL = Tool(
    "profile",
    commands=(
        Command(
            "profile",
            "Show which kernels take the time, and why two cases or builds differ.",
            "Explain",
            "harness.tools.profile.command:profile",
        ),
    ),
    explanations={
        "gate": "harness.tools.profile.sides:gate_kernels",
        "compare": "harness.tools.profile.sides:revision_kernels",
        "side by side": "harness.tools.profile.sides:request_kernels",
    },
    page_sections={
        "history": "harness.tools.profile.kernel_pages:section",
        "details": "harness.tools.profile.details:read_details",
    },
    watchers=("harness.tools.profile.watcher:KernelWatcher",),
)
