"""Finding better schedules: candidates are built, judged against LLVM, timed on the device, and the best are kept."""

from harness.base.tool import CacheKind, Command, Tool

TOOL = Tool(
    "tune",
    commands=(
        Command(
            "tune",
            "Search for schedules that are faster than TVM's own.",
            "Measure",
            "harness.tools.tune.command:tune",
        ),
    ),
    cache_kinds=(CacheKind("trials", "trials of a network's tasks on a device"),),
)
