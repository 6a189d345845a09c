"""Which operators are right on which path: networks of one operator, built and run as every case is, in one table."""

from harness.base.tool import CacheKind, Command, JobKind, Tool

TOOL = Tool(
    "ops",
    commands=(
        Command(
            "ops",
            "Test single operators on each path: right, wrong, or not built.",
            "Measure",
            "harness.tools.ops.command:ops",
        ),
        Command(
            "inspect",
            "Count the operators of a network, and show which path can run which.",
            "Explain",
            "harness.tools.ops.inspect_command:inspect",
        ),
    ),
    cache_kinds=(
        CacheKind("operators", "operator cases, with their inputs and expected outputs"),
        CacheKind("operator_results", "result of an operator case"),
    ),
    jobs={"import": JobKind("harness.tools.ops.import_trial:import_network")},
)
