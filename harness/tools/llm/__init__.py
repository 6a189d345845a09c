"""Language models: whether prefill and decode are right, and how many tokens a second they make.

`cases` makes programs of a suite's table, whose weights are in `weights` and `folders`. One worker computes the right
answers (`judge`), another builds the library (`build`, `network`, `lowering`, `quirks`) or takes that of mlc-llm
(`mlc`). `run` loads it (`conversation`), judges it (`verify`), times it, and fills the `part` of a record. `table` and
`context` show that.
"""

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
