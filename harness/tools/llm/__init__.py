"""Language models: whether prefill and decode are right, and how many tokens a second they make."""

from harness.base.tool import CacheKind, Command, JobKind, Tool

TOOL = Tool(
    "llm",
    commands=(
        Command(
            "llm",
            "Run language models: is every logit right, and how many tokens a second?",
            "Measure",
            "harness.tools.llm.command:llm",
        ),
    ),
    quirks="harness.tools.llm.quirks:QUIRKS",
    quirk_probes="harness.tools.llm.quirks:PROBES",
    programs={"llm": "harness.tools.llm.cases:LlmTask", "mlc": "harness.tools.llm.cases:MlcTask"},
    record_parts={"llm": "harness.tools.llm.part:LlmPart"},
    part_views={"llm": "harness.tools.llm.table:VIEW"},
    page_sections={
        "history": "harness.tools.llm.context:section",
        "details": "harness.tools.llm.context:read_details",
    },
    cache_kinds=(CacheKind("llm_weights", "weights of a language model, as a library takes them"),),
    jobs={
        "llm-library": JobKind("harness.tools.llm.build:build_library", library=True),
        "llm-truth": JobKind("harness.tools.llm.judge:write_truth", author="numpy"),
        "mlc-library": JobKind("harness.tools.llm.mlc:take_library", library=True),
    },
)
