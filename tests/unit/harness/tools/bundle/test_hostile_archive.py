"""Archives that were made to fill memory, to take for ever, or to write elsewhere: each is refused, and in one line."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from harness.base.failures import UsageError
from harness.tools.bundle import archive
from harness.tools.bundle.archive import find_files, unpack
from harness.tools.bundle.results import BrokenLine, lines_of

WANTED = {"a": 1 << 20, "b": 1 << 20}
MEMORY_BYTES = 16 << 20


def header(name: str = "results/a", kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    """One header as it stands in an archive, whatever follows it."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def sparse() -> bytes:
    """A file with holes, of more of them than there is memory, as a pax header announces it."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as made:
        member = tarfile.TarInfo("results/a")
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "results/a"}
        member.size = 1 << 20
        made.addfile(member, io.BytesIO(b"9999999\n" + b"1\n" * (1 << 19)))
    return file.getvalue()


def nested_names() -> bytes:
    return (header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 1) + b"x" * 512) * 5000


HOSTILE: dict[str, Callable[[], bytes]] = {
    "2 GB of headers": lambda: header(kind=tarfile.XHDTYPE, size=2 << 30) + bytes(4 << 20),
    "a name of 2 GB": lambda: header(kind=tarfile.GNUTYPE_LONGNAME, size=2 << 30) + bytes(4 << 20),
    "headers for all that follows": lambda: header(kind=tarfile.XGLTYPE, size=1 << 30),
    "names of names": nested_names,
    "a negative size": lambda: header(size=-5),
    "a file with holes": sparse,
    "an old file with holes": lambda: header(kind=tarfile.GNUTYPE_SPARSE, size=1 << 20),
    "a link": lambda: header(kind=tarfile.SYMTYPE),
    "a hard link": lambda: header(kind=tarfile.LNKTYPE),
    "a device": lambda: header(kind=tarfile.CHRTYPE),
    "a file that is there twice": lambda: header() + header(),
    "one that leads out": lambda: header("results/../../a"),
    "one that is too large": lambda: header(size=1 << 40),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["tar", "gzip", "zstd"])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_was_made_to_harm_is_refused_at_once(
    tmp_path: Path, content: Callable[[], bytes], pack: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "results.tar"
    file.write_bytes(pack(content()))
    tracemalloc.start()
    with pytest.raises(UsageError):
        find_files(file, WANTED, tmp_path / "into")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < MEMORY_BYTES
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", [".", "./.", "results/.", "./results"])
def test_a_folder_by_any_name_is_passed_over(tmp_path: Path, name: str) -> None:
    file = tmp_path / "results.tar"
    file.write_bytes(header(name, tarfile.DIRTYPE) + header() + bytes(1024))
    assert list(find_files(file, WANTED, tmp_path / "into")) == ["a"]


def test_more_than_an_archive_may_hold_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "CHUNK_BYTES", 1 << 14)
    file = tmp_path / "results.tar.gz"
    file.write_bytes(gzip.compress(header("results/other/x", size=1 << 30) + bytes(8 << 20)))
    with pytest.raises(UsageError, match="unpacks to more than 1 MiB"):
        find_files(file, WANTED, tmp_path / "into", ignored=["other"])


def test_more_files_than_anybody_packs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 10)
    file = tmp_path / "results.tar"
    file.write_bytes(header("results/other/x") * 11)
    with pytest.raises(UsageError, match="more than 10 files"):
        find_files(file, WANTED, tmp_path / "into", ignored=["other"])


@given(st.binary(max_size=2048) | st.binary(max_size=1024).map(lambda tail: header() + tail))
def test_no_bytes_do_more_than_end_in_a_refusal(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    for packed in (content, gzip.compress(content)[:-1], zstandard.compress(content)):
        folder = tmp_path_factory.mktemp("any")
        file = folder / "results.tar"
        file.write_bytes(packed)
        with contextlib.suppress(UsageError):
            find_files(file, WANTED, folder / "files")
        with contextlib.suppress(UsageError):
            unpack(file, folder / "bundle")


@pytest.mark.parametrize(
    ("content", "why"), [(b"\n" * (1 << 20), "does not follow from"), (b"[" * 100, "is longer than")]
)
def test_lines_are_read_one_by_one(content: bytes, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tools.bundle.results.LONGEST_LINE_BYTES", 100)
    with pytest.raises(BrokenLine, match=why):
        list(lines_of(io.BytesIO(content), ""))
