"""Which operator of a network is the first that is off: the network cut into pieces, each built and run as any case."""

from harness.base.tool import CacheKind, Command, Tool

TOOL = Tool(
    "explain",
    commands=(
        Command(
            "diverge",
            "Find the first wrong or failing operator of a case.",
            "Explain",
            "harness.tools.explain.record_commands:diverge",
            formerly="show --diverge",
        ),
        Command(
            "kernels",
            "Show the files of the OpenCL kernels, and the build log of the device.",
            "Explain",
            "harness.tools.explain.record_commands:kernels",
            formerly="show --kernels",
        ),
        Command(
            "crossover",
            "Show which path is fastest for each model, and by how much.",
            "Explain",
            "harness.tools.explain.record_commands:crossover",
            formerly="show --crossover",
        ),
        Command(
            "partitions",
            "Show what went to CLML, what stayed on OpenCL, and why.",
            "Explain",
            "harness.tools.explain.record_commands:partitions",
            formerly="show --partitions",
        ),
        Command(
            "reduce",
            "Shrink a wrong or broken network to the smallest that fails in the same way.",
            "Explain",
            "harness.tools.explain.reduce_command:reduce",
        ),
    ),
    page_sections={
        "report": "harness.tools.explain.first_wrong:section",
        "details": "harness.tools.explain.partitions:read_details",
    },
    cache_kinds=(CacheKind("pieces", "a part of a network that shows a defect, and its inputs"),),
)
