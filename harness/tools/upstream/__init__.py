"""Defects of TVM: probe them, report them upstream, and find the revision that brought one."""

from harness.base.tool import CacheKind, Command, JobKind, Tool

TOOL = Tool(
    "upstream",
    commands=(
        Command(
            "bisect",
            "Find the first release or commit with which a case is wrong, broken or slower.",
            "Judge",
            "harness.tools.upstream.bisect_command:bisect",
        ),
        Command(
            "quirks",
            "List the known defects of TVM, and probe the installed TVM for each.",
            "Explain",
            "harness.tools.upstream.quirks_command:quirks",
        ),
    ),
    quirks="harness.tools.upstream.tuner_quirks:QUIRKS",
    cache_kinds=(CacheKind("bisect", "results of a bisection"),),
    jobs={"probe": JobKind("harness.tools.upstream.quirk_probes:probe")},
)
