"""What an index of a file of records answers is what reading the whole file answers, whatever became of the file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_records import a_record
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from device_runner.device import Identity
from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.judge.sides import latest_build
from harness.measure.records import index_database
from harness.measure.records.index import MOST_SKIPPED, RecordIndex, skipped_lines
from harness.measure.records.record import Record, RecordFile, Releases, ResumeKey, parse
from harness.tools.cache.entries import entries, prune

OLD = Releases(tvm="0.25.0", ffi="0.1.12")
RECORDS = st.builds(
    a_record,
    case=st.sampled_from(["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]),
    identity=st.sampled_from([Identity("phone", "s", gpu=gpu) for gpu in "AB"]),
    device=st.sampled_from(["a", "b"]),
    as_shipped=st.booleans(),
    quick=st.booleans(),
    standalone=st.sampled_from([False, False, True]),
    artifact=st.sampled_from(["a" * 24, "b" * 24]),
    outcome=st.sampled_from([Outcome.OK, Outcome.WRONG_RESULT, Outcome.DEVICE_LOST]),
    compiled_with=st.sampled_from([None, None, OLD]),
    run=st.uuids().map(str),
)


@pytest.fixture(autouse=True)
def _always_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(index_database, "SMALL_BYTES", -1)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))


def anything(_: str) -> bool:
    return True


def texture(case: str) -> bool:
    return "texture" in case


@dataclass(frozen=True)
class Answers:
    """All that can be asked of a file."""

    skipped: list[str]
    devices: list[str]
    cases: list[str]
    every: list[Record]
    newest: list[Record]
    sustained: list[Record]
    builds: list[list[Record]]
    of_device: list[list[Record]]
    by_key: dict[str, tuple[list[Record], Record | None]]


def asked(file: Path) -> Answers:
    with RecordIndex(file) as index:
        every = index.every(anything)
        return Answers(
            index.skipped,
            index.devices,
            index.cases,
            every,
            list(index.newest(texture)),
            list(index.newest(anything, sustained=True)),
            list(index.newest_builds(anything)),
            list(index.newest_builds(anything, "b")),
            {str(key): (index.of_key(key), index.settled(key)) for key in map(resume_key, every)},
        )


def resume_key(record: Record) -> ResumeKey:
    return ResumeKey(record.case, record.identity_key, record.artifact, record.as_shipped, record.quick)


def read(file: Path) -> Answers:
    """The same by reading everything."""
    loaded = RecordFile(file).load()
    every = loaded.records
    latencies = [record for record in every if not record.standalone]
    series = _series(latencies).values()
    by_key = {key: [r for r in latencies if resume_key(r) == key] for key in map(resume_key, every)}
    return Answers(
        loaded.skipped,
        list(dict.fromkeys(record.device for record in every)),
        sorted({record.case for record in every}),
        every,
        [_newest(group) for group in series if texture(group[0].case)],
        [_newest(group) for group in _series([record for record in every if record.standalone]).values()],
        [latest_build(group) for group in series],
        [latest_build(group) for group in _series([r for r in latencies if r.device == "b"]).values()],
        {
            str(key): (of_key, ([None, *(r for r in of_key if r.outcome.conclusive)])[-1])
            for key, of_key in by_key.items()
        },
    )


def _newest(group: list[Record]) -> Record:
    return ([record for record in group if not record.compiled_with] or group)[-1]


def _series(records: list[Record]) -> dict[object, list[Record]]:
    found: dict[object, list[Record]] = {}
    for record in records:
        found.setdefault((record.case, record.identity_key, record.as_shipped), []).append(record)
    return found


class FileLife(RuleBasedStateMachine):
    """A file of records to which happens what happens to files, and which is asked now and then."""

    @initialize()
    def begin(self) -> None:
        self.file = Path(os.environ["ADRENO_BENCH_CACHE"]).parent / f"{os.urandom(8).hex()}.jsonl"

    @rule(records=st.lists(RECORDS, max_size=4))
    def append(self, records: list[Record]) -> None:
        for record in records:
            RecordFile(self.file).append(record)

    @rule(data=st.sampled_from([b"\n", b"{}\n", b"not json", b'{"schema": 9}\n', b"\n\n \n"]))
    def write_something_else(self, data: bytes) -> None:
        with self.file.open("ab") as stream:
            stream.write(data)

    @rule(record=RECORDS, share=st.floats(0, 1))
    def tear(self, record: Record, share: float) -> None:
        line = record.line().encode()
        with self.file.open("ab") as stream:
            stream.write(line[: int(share * len(line))])

    @rule(share=st.floats(0, 1))
    def cut(self, share: float) -> None:
        if self.file.exists():
            os.truncate(self.file, int(share * self.file.stat().st_size))

    @rule(share=st.floats(0, 1), new=st.sampled_from([b"a", b"b", b"x", b"\n", b'"']))
    def edit_in_place(self, share: float, new: bytes) -> None:
        if self.file.exists() and (size := self.file.stat().st_size):
            with self.file.open("r+b") as stream:
                stream.seek(int(share * (size - 1)))
                stream.write(new)

    @rule()
    def swap_builds_in_place(self) -> None:
        if self.file.exists():
            with self.file.open("r+b") as stream:
                text = stream.read().replace(b"a" * 24, b"c" * 24).replace(b"b" * 24, b"a" * 24)
                stream.seek(0)
                stream.write(text)

    @rule(records=st.lists(RECORDS, min_size=1, max_size=4))
    def replace(self, records: list[Record]) -> None:
        new = self.file.with_suffix(".new")
        new.write_text("".join(record.line() + "\n" for record in records))
        new.replace(self.file)

    @rule()
    def remove(self) -> None:
        self.file.unlink(missing_ok=True)

    @invariant()
    def the_index_says_what_the_file_says(self) -> None:
        if hasattr(self, "file"):
            assert asked(self.file) == read(self.file)


def test_an_index_answers_what_the_whole_file_answers() -> None:
    rules = settings(max_examples=15, stateful_step_count=12)
    run_state_machine_as_test(FileLife, settings=rules)


def a_file(folder: Path, count: int = 40) -> Path:
    """Records of two series, a new build every ten."""
    file = RecordFile(folder / "records.jsonl")
    for number in range(count):
        case = f"tiny-{('opencl', 'texture')[number % 2]}-float32-untuned"
        file.append(a_record(case, artifact=f"{number // 10:024x}", run=str(number)))
    return file.path


def databases() -> list[Path]:
    return sorted(Path(os.environ["ADRENO_BENCH_CACHE"]).glob("record_indexes/*/index.sqlite"))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are parsed to make an index."""
    lines: list[bytes] = []

    def parse_and_count(line: bytes) -> Record:
        lines.append(line)
        return parse(line)

    monkeypatch.setattr(index_database, "parse", parse_and_count)
    return lines


def test_every_line_is_parsed_once_and_only_new_ones_later(tmp_path: Path, parsed: list[bytes]) -> None:
    file = a_file(tmp_path)
    assert asked(file) == asked(file) == read(file)
    assert len(parsed) == 40
    RecordFile(file).append(a_record())
    assert asked(file) == read(file)
    assert len(parsed) == 41


def test_a_line_without_its_end_counts_as_it_is_and_is_forgotten_when_it_goes_on(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    for more in (a_record("other-opencl-float32-untuned", device="another").line(), "torn", "\n"):
        with file.open("a") as stream:
            stream.write(more)
        assert asked(file) == read(file)


def test_an_index_that_is_damaged_foreign_or_of_another_form_is_made_anew(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    expected = asked(file)
    (place,) = databases()
    good = place.read_bytes()

    def foreign() -> None:
        place.unlink()
        with contextlib.closing(sqlite3.connect(place)) as db:
            db.execute("CREATE TABLE line (series, at, artifact, quick, own, conclusive)")

    for damage in (
        lambda: place.write_bytes(b"not a database" * 1000),
        lambda: place.write_bytes(good[: len(good) // 2]),
        lambda: place.write_bytes(good[:4096] + bytes(len(good) - 4096)),
        foreign,
    ):
        damage()
        assert asked(file) == expected
        assert asked(file) == expected  # by now there is a good one again, or none


@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE line SET at = at + 1",
        "UPDATE line SET artifact = 'x'",
        "UPDATE line SET is_own = 1 - is_own, quick = 1 - quick",
    ],
)
def test_an_index_that_lies_is_found_out_by_the_lines_and_goes(tmp_path: Path, lie: str) -> None:
    file = a_file(tmp_path)
    expected = asked(file)
    (place,) = databases()
    with contextlib.closing(sqlite3.connect(place)) as db:
        db.execute(lie)
        db.commit()
    with RecordIndex(file) as index:
        assert list(index.newest(anything)) == [record for record in expected.every if record.run in ("38", "39")]
    assert databases() == []


def test_a_line_that_changes_between_index_and_question_is_seen_as_it_is_now(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    with RecordIndex(file) as index:
        text = file.read_bytes()
        with file.open("r+b") as stream:
            stream.write(text.replace(b"%024x" % 3, b"e" * 24))
        assert {record.artifact for build in index.newest_builds(anything) for record in build} == {"e" * 24}


@pytest.mark.parametrize("why", ["a file is where the cache should be", "the database cannot be opened", "no space"])
def test_where_no_index_can_be_kept_there_is_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    file = a_file(tmp_path)
    cache = Path(os.environ["ADRENO_BENCH_CACHE"])
    if why.startswith("a file"):
        cache.write_text("")
    else:
        connect = sqlite3.connect

        def refuses(place: Path | str, **options: Any) -> sqlite3.Connection:
            if place != ":memory:" and why != "no space":
                raise sqlite3.OperationalError(why)
            db: sqlite3.Connection = connect(place, **options)
            if place != ":memory:":
                db.execute("PRAGMA max_page_count = 3")
            return db

        monkeypatch.setattr("sqlite3.connect", refuses)
    assert asked(file) == read(file)


def test_while_somebody_else_makes_the_index_there_is_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_database, "LOCKED_S", 0.05)
    file = a_file(tmp_path)
    asked(file)
    RecordFile(file).append(a_record())
    (place,) = databases()
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert asked(file) == read(file)


def test_many_readers_and_a_writer_at_once_all_see_whole_files(tmp_path: Path) -> None:
    file = a_file(tmp_path, 10)
    wrong: list[object] = []

    def look() -> None:
        for _ in range(8):
            with RecordIndex(file) as index:
                runs = [record.run for record in index.every(anything)]
            if runs != [str(number) for number in range(len(runs))] or len(runs) < 10:
                wrong.append(runs)

    readers = [threading.Thread(target=look) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(10, 30):
        RecordFile(file).append(a_record(run=str(number)))
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_process_that_is_killed_while_it_makes_an_index_leaves_nothing_wrong(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    script = (
        "import os, sys; from pathlib import Path; from harness.measure.records import index_database as made\n"
        "from harness.measure.records.index import RecordIndex\n"
        "made.SMALL_BYTES, parse, seen = -1, made.parse, []\n"
        "def killing(line):\n"
        "    seen.append(line)\n"
        "    return os.kill(os.getpid(), 9) if len(seen) == 30 else parse(line)\n"
        "made.parse = killing\n"
        "RecordIndex(Path(sys.argv[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(file)], check=False).returncode == -9
    assert asked(file) == asked(file) == read(file)


def test_what_is_no_file_or_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a file"):
        RecordIndex(tmp_path / "pipe")
    file = a_file(tmp_path)
    monkeypatch.setattr(Path, "open", lambda *_: os.open("/proc/nothing", os.O_RDONLY))
    with pytest.raises(RigFailure, match="cannot read"):
        RecordIndex(file)


def test_making_a_large_index_says_how_far_it_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_database, "SAY_EVERY_S", 0.0)
    said: list[str] = []
    with RecordIndex(a_file(tmp_path), said.append):
        assert "this once: 0%" in said[0]


def test_a_small_file_has_no_index_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_database, "SMALL_BYTES", 1 << 20)
    asked(a_file(tmp_path))
    assert databases() == []


def test_the_cache_says_whose_index_it_is_and_prunes_it(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    script = (
        "from pathlib import Path; from harness.measure.records import index_database as made; made.SMALL_BYTES = -1\n"
    )
    script += f"from harness.measure.records.index import RecordIndex; RecordIndex(Path({str(file)!r}))"
    subprocess.run([sys.executable, "-c", script], check=True)
    root = Path(os.environ["ADRENO_BENCH_CACHE"])
    (entry,) = [entry for entry in entries(root) if entry.kind == index_database.KIND]
    assert entry.title == str(file)
    prune(root, 0.0)
    assert databases() == []


def test_of_many_lines_that_are_no_records_the_first_are_named_and_the_others_counted() -> None:
    lines = [f"line {number}" for number in range(MOST_SKIPPED + 1)]
    named = [f"skipped {line}" for line in lines[:MOST_SKIPPED]]
    assert skipped_lines(lines[:MOST_SKIPPED]) == named
    assert skipped_lines(lines) == [*named, "skipped 1 more lines"]
