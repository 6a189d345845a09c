"""Which operator of a network is the first that is off: the network cut into pieces, each built and run as any case."""

from harness.base.tool import CacheKind, Command, Tool

TOOL = Tool(
    "explain",
    commands=(
        Command(
            "reduce",
            "Shrink a wrong or broken network to the smallest that fails alike.",
            "Explain",
            "harness.tools.explain.reduce_command:reduce",
        ),
    ),
    cache_kinds=(CacheKind("pieces", "a part of a network that shows a defect, and its inputs"),),
)
