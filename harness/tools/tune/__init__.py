"""Finding better schedules: candidates are built, judged against LLVM, timed on the device, and the best are kept."""

from harness.base.tool import CacheKind, Command, JobKind, Tool

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
    jobs={
        "tasks": JobKind("harness.tools.tune.candidate:find_tasks"),
        "task-answer": JobKind("harness.tools.tune.candidate:answer_task"),
        "candidate": JobKind("harness.tools.tune.candidate:build_candidate", library=True),
    },
)
