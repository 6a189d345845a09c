"""Records behind a URL: copied once, and again when they have changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_records import a_record

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.measure.records.places import open_records
from harness.measure.records.record import Record, RecordFile
from harness.tools.lake import urls


def written(folder: Path, name: str, *records: Record) -> Path:
    file = folder / name
    RecordFile(file).append(*records)
    return file


def test_a_url_is_copied_once_and_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="`make scale` installs it")
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    there = tmp_path / "there"
    there.mkdir()
    written(there, "a.jsonl", a_record())
    written(there, "b.jsonl", a_record(case="tiny-texture-float32-untuned"))
    (there / "notes.txt").write_text("no records")
    url, said = f"file://{there}", list[str]()

    def cases() -> list[str]:
        with open_records(url, said.append) as found:
            return found.cases

    assert cases() == ["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]
    assert len(said) == 2
    cases()
    assert len(said) == 2
    written(there, "b.jsonl", a_record(case="tiny-clml-float32-untuned"))
    assert len(cases()) == 3
    assert len(said) == 3
    with pytest.raises(UsageError, match="there are no records in"):
        open_records(f"{url}/nothing")


def test_a_server_that_does_not_answer_is_not_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="`make scale` installs it")
    pytest.importorskip("aiohttp", reason="`make scale` installs it")
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    with pytest.raises(RigFailure, match=r"cannot read http://127.0.0.1:9/x.jsonl: .*check the URL"):
        open_records("http://127.0.0.1:9/x.jsonl")


def test_an_object_that_is_too_large_is_refused_by_name_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="`make scale` installs it")
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    fsspec.filesystem("memory").pipe_file("/nights/1.jsonl", a_record().line().encode())
    monkeypatch.setattr(urls, "LARGEST_COPY_BYTES", 100)
    with pytest.raises(RigFailure, match=r"refused /nights/1.jsonl: it has more than 100 bytes"):
        open_records("memory://nights")
    assert list(tmp_path.rglob("*.jsonl")) == []
