"""The JSON Schema of what adreno-bench writes for programs: docs/reference/export.schema.json.

python -m benchmarks.export_schema
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic.json_schema import models_json_schema

from harness.judge.report.comparison import ComparisonExport
from harness.judge.report.exports import RunExport

FILE = Path(__file__).parent.parent / "docs" / "reference" / "export.schema.json"


def text() -> str:
    """Return the schema as the file has it: of all that `--export-json` writes, and of `gate --json` and others."""
    models = (RunExport, ComparisonExport)
    _, definitions = models_json_schema(
        [(model, "serialization") for model in models], by_alias=True, title="adreno-bench exports"
    )
    choices = [{"$ref": f"#/$defs/{model.__name__}"} for model in models]
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **definitions, "oneOf": choices}
    return json.dumps(schema, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
