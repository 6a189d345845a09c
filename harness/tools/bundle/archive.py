"""Archives of a folder: `.tar.zst`, `.tar.gz` or `.tar`, and reading them without trusting a byte in them.

`_members` is the only reader. It goes through an archive once, as a stream, and bounds all that an archive claims: how
much there is when it is unpacked, in how many members, and how large what describes a member is.
"""

from __future__ import annotations

import gzip
import math
import shutil
import tarfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn, cast

import zstandard

from device_runner.files import SCRATCH_SUFFIX
from harness.base.failures import UsageError
from harness.tools.bundle.manifest import LARGEST_MANIFEST_BYTES, MANIFEST
from harness.tools.shared.full_disk import writing

ENDINGS = (".tar.zst", ".tar.gz", ".tar")
GZIP_LEVEL, ZSTD_LEVEL = 1, 6
"""Weights hardly get smaller however long one tries, and what else is in a bundle is small."""
MOST_BYTES, MOST_GROWTH = 1 << 28, 100
"""An archive may hold so many bytes, or so many times its own size."""
MOST_MEMBERS = 100_000
MOST_HEADER_BYTES = 1 << 16
"""What describes one member: a long name, say."""
CHUNK_BYTES = 1 << 20
NOT_OURS = "the file was not made by adreno-bench"
NO_RESULTS = "name the folder that run.sh wrote; if this is it, remove that file"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def ending_of(path: Path) -> str:
    """Which kind of archive a name asks for; empty for a folder. Raises UsageError for another kind."""
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), "")
    if not ending and path.suffix and not path.is_dir():
        kinds = ", ".join(ENDINGS)
        raise UsageError(f"{path} is not a known kind of archive", hint=f"use {kinds}, or a folder's name")
    return ending


def name_inside(archive: Path) -> str:
    """Return the name of the folder in an archive that `write_archive` makes, or of a folder itself."""
    return archive.name.split(".")[0] if ending_of(archive) else archive.name


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
                name = PurePosixPath(name_inside(out)) / path.relative_to(folder)
                archive.add(path, name.as_posix(), filter=_plain)
        scratch.replace(out)
    finally:
        scratch.unlink(missing_ok=True)


def _files_of(folder: Path) -> list[Path]:
    """Return the files of a bundle, the manifest first, so that a reader of it need not read the rest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return sorted(files, key=lambda path: path != folder / MANIFEST)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Clear what differs from one packing to the next."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    member.mode = 0o644
    return member


@contextmanager
def _packing(file: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    if ending == ".tar.gz":
        with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    elif ending == ".tar.zst":
        with zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=-1).stream_writer(file, closefd=False) as stream:
            yield stream
    else:
        yield file


def find_files(
    source: Path, limits: Mapping[str, int], scratch: Path, ignored: Collection[str] = ()
) -> dict[str, Path]:
    """Return the files of a folder or an archive by name, those of an archive unpacked in `scratch`.

    `limits` names the files, and the most bytes of each; `ignored` are folders whose files do not count. Raises
    UsageError for a file that is neither, that is there twice, or that leads elsewhere.
    """
    if source.is_dir():
        return _in_folder(source, limits, ignored)
    files: dict[str, Path] = {}
    for member, content in _members(source):
        inner = member.parts[-2:]
        if any(part in ignored for part in member.parts[:-1]):
            continue
        name = inner[-1]
        if name not in limits or len(member.parts) > 2 or not content:
            raise UsageError(f"{source} has {str(member)!r}, which a bundle's runner never writes", hint=NO_RESULTS)
        if name in files:
            raise UsageError(f"{source} has {name} twice", hint="pack one results folder only")
        files[name] = content.save(scratch / name, limits[name])
    return files


def _in_folder(source: Path, limits: Mapping[str, int], ignored: Collection[str]) -> dict[str, Path]:
    files = {}
    for path in sorted(source.iterdir()):
        if path.name in ignored:
            continue
        if path.name not in limits or path.is_symlink() or not path.is_file():
            raise UsageError(f"{path} is not a file that a bundle's runner writes", hint=NO_RESULTS)
        _require_size(path.name, path.stat().st_size, limits[path.name])
        files[path.name] = path
    return files


def unpack(source: Path, folder: Path) -> None:
    """Unpack a bundle into a folder. Raises UsageError for a member that is no plain file below it."""
    for member, content in _members(source):
        if len(member.parts) < 2 or not content:
            raise UsageError(f"{source} has {str(member)!r}, which no bundle has", hint=NOT_OURS)
        content.save(folder.joinpath(*member.parts[1:]))


def first_member(source: Path, name: str) -> bytes:
    """Return a file of an archive, by its name in the folder that was packed. Raises UsageError if it has none."""
    for member, content in _members(source):
        if member.parts[1:] == (name,) and content:
            return content.read(LARGEST_MANIFEST_BYTES)
    raise UsageError(f"{source} has no {name}", hint="is it a bundle?")


class _Content:
    """What a member that is a plain file holds."""

    def __init__(self, source: Path, member: tarfile.TarInfo, stream: IO[bytes]) -> None:
        self._source, self._member, self._stream = source, member, stream

    def read(self, most_bytes: int) -> bytes:
        """Read the whole member. Raises UsageError if it is larger than `most_bytes`."""
        _require_size(self._member.name, self._member.size, most_bytes)
        with _blaming(self._source):
            return self._stream.read()

    def save(self, file: Path, most_bytes: int = 1 << 62) -> Path:
        """Write it into a new file. Raises UsageError if it is larger, or if there is a file."""
        _require_size(self._member.name, self._member.size, most_bytes)
        with _blaming(self._source):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as out:
                shutil.copyfileobj(self._stream, out, CHUNK_BYTES)
        return file


def _require_size(name: str, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise UsageError(f"{name} is larger than {most_bytes >> 20} MiB", hint=NOT_OURS)


def _members(source: Path) -> Iterator[tuple[PurePosixPath, _Content | None]]:
    """Yield the members of an archive that are no folders, with what is in them; None for what is no plain file.

    Raises UsageError for what cannot be read or leads out of the archive, and for more than an archive of ours has.
    """
    with _blaming(source), _unpacking(source) as archive:
        for number, member in enumerate(iter(archive.next, None), 1):
            vars(archive)["members"].clear()  # it keeps all that it has seen
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts:
                raise UsageError(f"{source} has {member.name!r}, which leaves the archive", hint="do not unpack it")
            if number > MOST_MEMBERS:
                raise UsageError(f"{source} has more than {MOST_MEMBERS} files", hint=NOT_OURS)
            if path.parts and not member.isdir():
                stream = archive.extractfile(member) if member.isreg() else None
                yield path, _Content(source, member, stream) if stream else None


@contextmanager
def _blaming(source: Path) -> Iterator[None]:
    """Turn whatever comes of reading an archive into one line."""
    try:
        yield
    except FileNotFoundError:
        raise UsageError(f"there is no {source}", hint="correct its path") from None
    except (tarfile.TarError, OSError, ValueError, LookupError, RecursionError) as error:
        hint = "is it a .tar, .tar.gz or .tar.zst, and copied whole?"
        raise UsageError(f"{source} cannot be read: {error}", hint=hint) from None


@contextmanager
def _unpacking(source: Path) -> Iterator[tarfile.TarFile]:
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(source.open("rb"))
        begins = file.read(len(_ZSTD))
        file.seek(0)
        most_bytes = max(MOST_BYTES, MOST_GROWTH * source.stat().st_size)
        if begins == _ZSTD:
            file = stack.enter_context(zstandard.ZstdDecompressor().stream_reader(file))
        elif begins.startswith(_GZIP):
            file = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=file)))
        bounded = cast("IO[bytes]", _Bounded(file, most_bytes, source))
        yield stack.enter_context(tarfile.open(fileobj=bounded, mode="r|", bufsize=CHUNK_BYTES, tarinfo=_Header))


class _Bounded:
    """A stream of a file, which raises UsageError when it has more than `most_bytes`."""

    def __init__(self, stream: IO[bytes], most_bytes: int, source: Path) -> None:
        self._stream, self._most_bytes, self._source = stream, most_bytes, source
        self._read_bytes = 0

    def read(self, size: int) -> bytes:
        """Read at most this number of bytes."""
        try:
            piece = self._stream.read(size)
        except Exception as error:  # each kind of compression has errors of its own
            raise tarfile.ReadError(str(error)) from None
        self._read_bytes += len(piece)
        if self._read_bytes > self._most_bytes:
            raise UsageError(f"{self._source} unpacks to more than {self._most_bytes >> 20} MiB", hint=NOT_OURS)
        return piece


class _Header(tarfile.TarInfo):
    """What describes a member; no larger than it may be, and of no file with holes."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Check a header, for `tarfile`, before it reads what belongs to it."""
        if not 0 <= self.size <= (math.inf if self.isfile() else MOST_HEADER_BYTES):
            self._refuse()
        proceed: Any = super()
        header: tarfile.TarInfo = proceed._proc_member(archive)
        return header

    def _refuse(self, *_: object) -> NoReturn:
        raise tarfile.ReadError(f"a header of {self.size} bytes, or a file with holes")

    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse
