"""The JSON Schema of what adreno-bench writes for programs: docs/reference/export.schema.json.

python -m benchmarks.export_schema
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.judge.report.comparison import schema

FILE = Path(__file__).parent.parent / "docs" / "reference" / "export.schema.json"


def text() -> str:
    """Return the schema as the file has it."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
