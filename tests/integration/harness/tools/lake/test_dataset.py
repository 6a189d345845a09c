"""What a question to files of Parquet imports."""

import subprocess
import sys
from pathlib import Path

import pytest
from fake_records import sessions

from harness.measure.records.record import RecordFile
from harness.tools.lake.compaction import compact_file

pytest.importorskip("duckdb", reason="`make scale` installs it")
pytest.importorskip("pyarrow", reason="`make scale` installs it")
pytest.importorskip("pandas", reason="nothing could import it")
QUESTION = """
import sys
from pathlib import Path
from harness.tools.lake.parquet import ParquetDataset
with ParquetDataset([Path(sys.argv[1])]) as records:
    assert len(list(records.newest_sessions(lambda _: True))) == 1
print("pandas" in sys.modules)
"""


def test_a_question_leaves_pandas_alone(tmp_path: Path) -> None:
    RecordFile(tmp_path / "one.jsonl").append(*sessions(10))
    compact_file(tmp_path / "one.jsonl", tmp_path)
    (file,) = tmp_path.rglob("*.parquet")
    said = subprocess.run([sys.executable, "-c", QUESTION, file], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["False"]
