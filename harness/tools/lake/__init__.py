"""Records of many hosts and nights: in several files, in Parquet, and behind URLs."""

from harness.base.tool import MANY_FILES, URL, CacheKind, Command, Tool

TOOL = Tool(
    "lake",
    commands=(
        Command(
            "records",
            "Keep the records of many runs and hosts in Parquet.",
            "Explain",
            "harness.tools.lake.command:records",
        ),
    ),
    record_sources={
        ".parquet": "harness.tools.lake.parquet:ParquetDataset",
        URL: "harness.tools.lake.urls:open_url",
        MANY_FILES: "harness.tools.lake.record_dataset:RecordDataset",
    },
    cache_kinds=(CacheKind("record_copies", "copy of a records file of a URL"),),
)
