"""Our index of records against DuckDB, over the lines themselves and over a copy of them in Parquet.

    pip install duckdb
    python -m benchmarks.index_peers FILE

FILE is what `benchmarks.record_scale` makes (`--in FOLDER` keeps it). Each question is asked in a process of its own,
and all must give the same records. The copy in Parquet has the columns that records are chosen by and the line itself;
lines that were appended since are read beside it. Needs as much room again in the temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.record_scale import HERE, PHONE, artifact_of, case_of, cost
from harness.base.tables import table

SERIES, SESSIONS = 1_000, 8
CASE = case_of(1).id
LIMIT_S = 900.0
CONFIG = {"memory_limit": "4GB"}
COLUMNS = {"case": "case", "identity_key": "identity", "artifact": "artifact", "outcome": "outcome", "device": "device"}
CHOSEN = ", ".join(f"json->>'$.{key}' AS \"{name}\"" for key, name in COLUMNS.items())
CONCLUSIVE = "outcome NOT IN ('device-lost', 'infra-error', 'throttled', 'inconclusive')"
NEWEST = 'SELECT max_by(line, started) FROM records {} GROUP BY "case", identity'
Answer = Iterable[object]


def ours(question: str, file: Path, _: Path) -> Answer:
    """By `harness.measure.records.index`."""
    from harness.measure.records.index import RecordIndex
    from harness.measure.records.record import ResumeKey

    with RecordIndex(file) as index:
        if question == "start":
            return [index.devices]
        if question == "outcomes":
            counts = Counter[str]()
            for one in index.outcomes():
                counts[one.outcome] += one.records
            return sorted(counts.items())
        if question == "settled":
            found = (index.settled(ResumeKey(case, PHONE.key, key, False)) for case, key in _keys(file))
            return [one.line() for one in found if one]
        return [one.line() for one in index.newest(lambda case: question != "one case" or case == CASE)]


def json_lines(question: str, file: Path, _: Path) -> Answer:
    """By DuckDB, which reads the lines each time."""
    return _ask(question, file, f"SELECT {CHOSEN}, json->>'$.started_at' AS started, json AS line {_lines(file)}")


def parquet(question: str, file: Path, folder: Path) -> Answer:
    """By DuckDB, of a copy, and of the lines that were appended since."""
    copy, size = folder / "records.parquet", folder / "size"
    if not copy.exists():
        import duckdb

        made = f"SELECT {CHOSEN}, json->>'$.started_at' AS started, json AS line {_lines(file)}"
        duckdb.connect(config=CONFIG).execute(f"COPY ({made}) TO '{copy}' (COMPRESSION zstd)")
        size.write_text(str(file.stat().st_size))
    tail = folder / "tail.jsonl"
    with file.open("rb") as lines, tail.open("wb") as rest:
        lines.seek(int(size.read_text()))
        shutil.copyfileobj(lines, rest)
    added = f"UNION ALL SELECT {CHOSEN}, json->>'$.started_at', json {_lines(tail)}" if tail.stat().st_size else ""
    return _ask(question, file, f"SELECT * FROM '{copy}' {added}")


PEERS: dict[str, Callable[[str, Path, Path], Answer]] = {
    "ours": ours,
    "DuckDB, JSON lines": json_lines,
    "DuckDB, Parquet": parquet,
}
QUESTIONS = {
    "start": "first question of all, which makes the index or copy",
    "start again": "start, and the names of the devices",
    "newest": "the last record of each of 1,000 series",
    "one case": "the last record of one case",
    "settled": "what settled each of 1,000 cases",
    "outcomes": "how many records of each outcome",
    "appended": "the last record of one case, after a line was appended",
}


def _lines(file: Path) -> str:
    return f"FROM read_json_objects('{file}', format='newline_delimited')"


def _ask(question: str, file: Path, records: str) -> Answer:
    import duckdb

    db = duckdb.connect(config=CONFIG)
    db.execute(f"CREATE VIEW records AS {records}")
    if question == "start":
        return [[name for (name,) in db.execute("SELECT DISTINCT device FROM records").fetchall()]]
    if question == "outcomes":
        return sorted(db.execute("SELECT outcome, count(*) FROM records GROUP BY outcome").fetchall())
    where = f"WHERE \"case\" = '{CASE}'" if question == "one case" else ""
    if question == "settled":
        db.execute('CREATE TABLE wanted ("case" TEXT, artifact TEXT)')
        db.executemany("INSERT INTO wanted VALUES (?, ?)", _keys(file))
        where = f"JOIN wanted USING (\"case\", artifact) WHERE {CONCLUSIVE} AND identity = '{PHONE.key}'"
    from harness.measure.records.record import parse

    return [parse(line.encode()).line() for (line,) in db.execute(NEWEST.format(where)).fetchall()]


def _keys(file: Path) -> list[tuple[str, str]]:
    """Return the resume keys of the newest builds, as the file's name tells them."""
    records = int(file.stem.split("-")[1])
    newest = (records // SERIES - 1) // SESSIONS
    return [(case_of(number).id, artifact_of(number, newest)) for number in range(SERIES)]


@contextlib.contextmanager
def _one_more_line(file: Path) -> Iterator[None]:
    """One more line while this lasts: the first one again, an hour after all others."""
    size = file.stat().st_size
    with file.open("r+b") as lines:
        facts = json.loads(lines.readline())
        lines.seek(size)
        lines.write(json.dumps({**facts, "case": CASE, "started_at": "2099-01-01T00:00:00"}).encode() + b"\n")
    try:
        yield
    finally:
        with file.open("r+b") as lines:
            lines.truncate(size)


def main() -> None:
    """Print seconds, seconds of processor time and megabytes of each question and peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--ask", nargs=3, metavar=("PEER", "QUESTION", "FOLDER"), help="for the processes of this")
    chosen = parser.parse_args()
    file = chosen.file.resolve()
    if chosen.ask:
        peer, question, folder = chosen.ask
        answer = PEERS[peer](question, file, Path(folder))
        print(hashlib.sha256(json.dumps(sorted(map(str, answer))).encode()).hexdigest())
        return
    with tempfile.TemporaryDirectory(prefix="index-peers-") as folder:
        rows = []
        for question, text in QUESTIONS.items():
            asked = {"start again": "start", "appended": "one case"}.get(question, question)
            with _one_more_line(file) if question == "appended" else contextlib.nullcontext():
                took, told = {}, set()
                for peer in PEERS:
                    words = ["-m", "benchmarks.index_peers", str(file), "--ask", peer, asked, folder]
                    took[peer] = cost(words, HERE, Path(folder), LIMIT_S)
                    told.add(took[peer].said)
            if len(told) != 1 or any(one.code for one in took.values()):
                sys.exit(f"{question}: {took}")
            rows.append(
                (
                    text,
                    *(f"{one.seconds:.2f} s, {one.cpu_seconds:.2f} s, {one.megabytes:.0f} MB" for one in took.values()),
                )
            )
        print(table(rows, ("question", *PEERS)))


if __name__ == "__main__":
    main()
