"""Archives of a folder: `.tar.zst`, `.tar.gz` or `.tar`, and reading them without trusting a name in them."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from device_runner.disk import writing
from device_runner.files import SCRATCH_SUFFIX
from harness.bundle.manifest import LARGEST_MANIFEST_BYTES, MANIFEST
from harness.failures import UsageError

ENDINGS = (".tar.zst", ".tar.gz", ".tar")
GZIP_LEVEL, ZSTD_LEVEL = 1, 6
"""Weights hardly get smaller however long one tries, and what else is in a bundle is small."""


def ending_of(path: Path) -> str:
    """Which kind of archive a name asks for; empty for a folder. Raises UsageError for another kind."""
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), "")
    if not ending and path.suffix and not path.is_dir():
        kinds = ", ".join(ENDINGS)
        raise UsageError(f"{path} is no kind of archive that is known", hint=f"use {kinds}, or a folder's name")
    return ending


def write_archive(folder: Path, out: Path) -> None:
    """Pack a folder's files into an archive, whole or not at all; the same files give the same bytes.

    Raises DiskFull, OSError.
    """
    scratch = out.with_name(f".{out.name}{SCRATCH_SUFFIX}")
    try:
        with (
            writing(out.parent),
            scratch.open("wb") as file,
            _packing(file, ending_of(out)) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in _files_of(folder):
                name = PurePosixPath(out.name.split(".")[0]) / path.relative_to(folder)
                archive.add(path, name.as_posix(), filter=_plain)
        scratch.replace(out)
    finally:
        scratch.unlink(missing_ok=True)


def _files_of(folder: Path) -> list[Path]:
    """Its files, the manifest first: whoever looks for it need not read the rest."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return sorted(found, key=lambda path: path != folder / MANIFEST)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs from one time to the next."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    member.mode = 0o644
    return member


@contextmanager
def _packing(file: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    if ending == ".tar.gz":
        with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    elif ending == ".tar.zst":
        import zstandard

        with zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=-1).stream_writer(file, closefd=False) as stream:
            yield stream
    else:
        yield file


def read_members(
    source: Path, wanted: Collection[str], most_bytes: int, ignored: Collection[str] = ()
) -> dict[str, bytes]:
    """The wanted files of a folder, or of an archive of one, by their names in it.

    `ignored` are folders whose files do not count. Raises UsageError for a file that is neither, that is there twice,
    or that leads elsewhere; nothing is written anywhere.
    """
    if source.is_dir():
        return _in_folder(source, wanted, most_bytes, ignored)
    try:
        return _in_archive(source, wanted, most_bytes, ignored)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, OSError, ValueError) as error:
        raise UsageError(f"{source} cannot be read: {error}", hint="was it copied whole?") from None


def _in_folder(source: Path, wanted: Collection[str], most_bytes: int, ignored: Collection[str]) -> dict[str, bytes]:
    found = {}
    for path in sorted(source.iterdir()):
        if path.name in ignored:
            continue
        if path.name not in wanted or path.is_symlink() or not path.is_file():
            raise UsageError(f"{path} is none of the files that a bundle's runner writes", hint="remove it")
        if path.stat().st_size > most_bytes:
            raise UsageError(f"{path} is larger than {most_bytes >> 20} MiB", hint="it is none of ours")
        found[path.name] = path.read_bytes()
    return found


def _in_archive(source: Path, wanted: Collection[str], most_bytes: int, ignored: Collection[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with _unpacking(source) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts:
                raise UsageError(f"{source} has a file {member.name!r}, which leads out of it", hint="do not unpack it")
            inner = [part for part in path.parts if part != "."]
            if member.isdir() or any(part in ignored for part in inner[:-1]):
                continue
            name = inner[-1]
            if name not in wanted or len(inner) > 2 or not member.isreg():
                raise UsageError(f"{source} has {member.name!r}, which no bundle's runner writes", hint="remove it")
            if name in found:
                raise UsageError(f"{source} has {name} twice", hint="pack one results folder only")
            if member.size > most_bytes:
                raise UsageError(f"{member.name} is larger than {most_bytes >> 20} MiB", hint="it is none of ours")
            content = archive.extractfile(member)
            assert content
            found[name] = content.read()
    return found


@contextmanager
def _unpacking(source: Path) -> Iterator[tarfile.TarFile]:
    if ending_of(source) != ".tar.zst":
        with tarfile.open(source, "r:*") as archive:
            yield archive
        return
    import zstandard

    with source.open("rb") as file:
        try:
            with tarfile.open(fileobj=zstandard.ZstdDecompressor().stream_reader(file), mode="r|") as archive:
                yield archive
        except zstandard.ZstdError as error:
            raise tarfile.ReadError(str(error)) from None


def unpack(source: Path, folder: Path) -> None:
    """Unpack a bundle into a folder. Raises UsageError for a member that is no plain file below it."""
    try:
        with _unpacking(source) as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                inner = path.parts[1:]
                if path.is_absolute() or ".." in path.parts or not inner or not member.isreg():
                    raise UsageError(f"{source} has {member.name!r}, which no bundle has", hint="it is none of ours")
                content = archive.extractfile(member)
                assert content
                place = folder.joinpath(*inner)
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as file:
                    _copy(content.read, file)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UsageError(f"{source} cannot be unpacked: {error}", hint="was it copied whole?") from None


def first_member(source: Path, name: str) -> bytes:
    """A file of an archive, by its name in the folder that was packed. Raises UsageError if it has none."""
    try:
        with _unpacking(source) as archive:
            for member in archive:
                content = archive.extractfile(member) if PurePosixPath(member.name).parts[1:] == (name,) else None
                if content:
                    return content.read(LARGEST_MANIFEST_BYTES)
    except (tarfile.TarError, EOFError) as error:
        raise UsageError(f"{source} cannot be read: {error}", hint="was it copied whole?") from None
    raise UsageError(f"{source} has no {name}", hint="is it a bundle?")


def _copy(read: Callable[[int], bytes], into: io.BufferedWriter) -> None:
    while piece := read(1 << 20):
        into.write(piece)
