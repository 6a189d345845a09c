"""A store that hosts share, on a real S3 server: what one built the others take, whole and with the right hash."""

import contextlib
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from build_workers import GOOD, JOB, REFUSES, forks
from s3_server import BUCKET, Bucket, bucket

from device_runner.failures import Failure, SetupMissing
from harness.base.failures import CompileFailure, UsageError
from harness.base.plan import Job
from harness.base.suite import Limits, load_suite
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.pool import Builder
from harness.tools.builders import shared_store
from harness.tools.builders.shared_store import ObjectStore, entry_text, read_entry
from harness.tools.shared import remote
from harness.tools.shared.remote import BadObject

pytestmark = pytest.mark.rest

NEVER = "raise SystemExit('must not be called')"
SLOW_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with bucket(tmp_path_factory.mktemp("s3")) as made:
        yield made


@pytest.fixture
def empty(server: Bucket) -> Iterator[Bucket]:
    """The bucket without objects and faults."""
    yield server
    for fault in ("fail", "slow", "sealed", "requests"):
        (server.faults / fault).unlink(missing_ok=True)
    for name in server.objects():
        server.files().rm_file(f"{BUCKET}/{name}")


class Host:
    """A host with a cache of its own, which shares the bucket."""

    def __init__(self, folder: Path, url: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.url = folder, url
        self.said: list[str] = []

    def build(self, script: str) -> Artifact | Answers | Failure:
        shared, workers = ObjectStore(self.url, self.said.append), forks(self.folder, script)
        with Builder(self.folder / "cache", Limits(), forks=workers, shared=shared) as builder:
            return builder.build([JOB])[JOB.key]


def library(made: object) -> bytes:
    assert isinstance(made, Artifact), made
    return made.loadable.library.read_bytes()


def flip(server: Bucket, name: str, at: int = 0) -> None:
    """Flip a bit of an object."""
    content = bytearray(server.files().cat_file(f"{BUCKET}/{name}"))
    content[at] ^= 1
    server.files().pipe_file(f"{BUCKET}/{name}", bytes(content))


def object_of(content: bytes) -> str:
    return f"prefix/objects/{hashlib.sha256(content).hexdigest()}"


def entry_of(server: Bucket) -> str:
    return next(name for name in server.objects() if name.startswith("prefix/artifacts/"))


def test_what_one_host_built_another_takes(tmp_path: Path, empty: Bucket) -> None:
    first, second = (Host(tmp_path / name, empty.url) for name in "ab")
    built, taken = first.build(GOOD), second.build(NEVER)
    assert isinstance(built, Artifact)
    assert not built.reused
    assert isinstance(taken, Artifact)
    assert taken.reused
    assert taken.compiled == built.compiled
    assert library(taken) == library(built) == b"library"
    assert {file.name for file in taken.loadable.library.parent.iterdir()} == {
        file.name for file in built.loadable.library.parent.iterdir()
    }
    assert first.said == second.said == []


def test_a_compile_error_is_taken_too(tmp_path: Path, empty: Bucket) -> None:
    failures = [Host(tmp_path / name, empty.url).build(script) for name, script in (("a", REFUSES), ("b", NEVER))]
    assert [type(failure) for failure in failures] == [CompileFailure, CompileFailure]


def test_the_store_is_never_listed(tmp_path: Path, empty: Bucket) -> None:
    (empty.faults / "requests").unlink(missing_ok=True)
    for name in "ab":
        Host(tmp_path / name, empty.url).build(GOOD)
    requests = (empty.faults / "requests").read_text().splitlines()
    assert {line.partition(" ")[0] for line in requests} == {"GET", "PUT"}
    assert [line for line in requests if "list-type" in line or "prefix=" in line] == []


def test_a_flipped_byte_is_refused_by_name_and_mended(tmp_path: Path, empty: Bucket) -> None:
    Host(tmp_path / "a", empty.url).build(GOOD)
    flip(empty, object_of(b"library"))
    second, third = Host(tmp_path / "b", empty.url), Host(tmp_path / "c", empty.url)
    made = second.build(GOOD)
    assert library(made) == b"library"
    assert isinstance(made, Artifact)
    assert not made.reused
    name = object_of(b"library").removeprefix("prefix/")
    assert second.said == [f"refused {empty.url}/{name}: its content does not match its hash"]
    assert library(third.build(NEVER)) == b"library"


def test_a_flipped_byte_of_an_entry_is_refused_by_name_and_mended(tmp_path: Path, empty: Bucket) -> None:
    Host(tmp_path / "a", empty.url).build(GOOD)
    flip(empty, entry_of(empty), at=40)
    second, third = Host(tmp_path / "b", empty.url), Host(tmp_path / "c", empty.url)
    assert library(second.build(GOOD)) == b"library"
    assert [line.startswith(f"refused {empty.url}/artifacts/{JOB.key}") for line in second.said] == [True]
    assert library(third.build(NEVER)) == b"library"


SHA256 = "a" * 64
ENTRY = entry_text("artifacts/key", {"lib.so": SHA256, "manifest.json": "b" * 64}).encode()


def test_no_flipped_bit_of_an_entry_passes() -> None:
    assert read_entry(ENTRY, "artifacts/key") == {"lib.so": SHA256, "manifest.json": "b" * 64}
    for place in range(len(ENTRY)):
        for bit in range(8):
            changed = bytearray(ENTRY)
            changed[place] ^= 1 << bit
            with pytest.raises(BadObject):
                read_entry(bytes(changed), "artifacts/key")


@pytest.mark.parametrize("name", ["../lib.so", "/etc/passwd", ".sha256.json", "a/b", "", "a\0b"])
def test_a_file_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(BadObject):
        read_entry(entry_text("artifacts/key", {name: SHA256}).encode(), "artifacts/key")


def test_another_entry_under_this_name_and_what_is_no_hash_are_refused() -> None:
    with pytest.raises(BadObject):
        read_entry(ENTRY, "artifacts/other")
    with pytest.raises(BadObject):
        read_entry(entry_text("artifacts/key", {"lib.so": "../" + SHA256}).encode(), "artifacts/key")


def test_two_hosts_that_write_one_key_leave_one_whole_entry(tmp_path: Path, empty: Bucket) -> None:
    """Compilers are not deterministic to the byte: the libraries differ."""
    scripts = [GOOD.replace('b"library"', f'b"library of {name}"') for name in "ab"]
    hosts = [Host(tmp_path / name, empty.url) for name in "ab"]
    threads = [threading.Thread(target=host.build, args=(script,)) for host, script in zip(hosts, scripts, strict=True)]
    (empty.faults / "slow").write_text("0.2")  # both ask before either writes
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (empty.faults / "slow").unlink()
    assert library(Host(tmp_path / "c", empty.url).build(NEVER)) in (b"library of a", b"library of b")
    assert [host.said for host in hosts] == [[], []]


def test_a_bucket_that_asks_for_patience_gets_it(tmp_path: Path, empty: Bucket) -> None:
    host = Host(tmp_path / "a", empty.url)
    (empty.faults / "fail").write_text("2")
    assert library(host.build(GOOD)) == b"library"
    assert (empty.faults / "fail").read_text() == "0"
    assert host.said == []
    assert library(Host(tmp_path / "b", empty.url).build(NEVER)) == b"library"


def test_a_store_that_does_not_answer_costs_one_line(
    tmp_path: Path, empty: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "DEADLINE_S", 0.2)
    (empty.faults / "slow").write_text(str(SLOW_S))
    host = Host(tmp_path / "a", empty.url)
    assert library(host.build(GOOD)) == b"library"
    assert host.said == [f"the store {empty.url} is left out for 5 min: FSTimeoutError"]


def test_missing_credentials_cost_one_line(tmp_path: Path, empty: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3fs.S3FileSystem.clear_instance_cache()
    host = Host(tmp_path / "a", empty.url)
    try:
        assert library(host.build(GOOD)) == b"library"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
    assert host.said == [f"the store {empty.url} is left out for 5 min: Unable to locate credentials"]


def test_a_missing_bucket_costs_one_line(tmp_path: Path, empty: Bucket) -> None:
    host = Host(tmp_path / "a", "s3://missing/prefix")
    assert library(host.build(GOOD)) == b"library"
    assert host.said == ["the store s3://missing/prefix is left out for 5 min: The specified bucket does not exist"]


def test_a_host_that_may_only_read_reads(tmp_path: Path, empty: Bucket) -> None:
    Host(tmp_path / "a", empty.url).build(GOOD)
    (empty.faults / "sealed").touch()
    reader = Host(tmp_path / "b", empty.url)
    shared = ObjectStore(empty.url, reader.said.append)
    other = Job("compile", "fedcba98", "other", {})
    with Builder(tmp_path / "c", Limits(), forks=forks(reader.folder, GOOD), shared=shared) as builder:
        made = [builder.build([job])[job.key] for job in (other, JOB)]
    assert [one.reused for one in made if isinstance(one, Artifact)] == [False, True]
    assert reader.said == [f"the store {empty.url} is read, and not written to: Access Denied"]


def test_a_build_of_a_baseline_is_taken_by_its_key(tmp_path: Path, empty: Bucket) -> None:
    built = Host(tmp_path / "a", empty.url).build(GOOD)
    said: list[str] = []
    with Builder(tmp_path / "b", Limits(), shared=ObjectStore(empty.url, said.append)) as builder:
        assert library(builder.artifact(JOB.key)) == library(built)
        assert [builder.artifact(key) for key in ("never-built", "../artifacts", "")] == [None] * 3
    with Builder(tmp_path / "c", Limits()) as alone:
        assert alone.artifact(JOB.key) is None
    assert said == []


def test_a_folder_that_hosts_share_is_a_store(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="`make scale` installs it")
    url = f"file://{tmp_path}/shared"
    Host(tmp_path / "a", url).build(GOOD)
    assert library(Host(tmp_path / "b", url).build(NEVER)) == b"library"


class _Endless(BaseHTTPRequestHandler):
    """Answers every request with zeros, as long as somebody reads them."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(bytes(1 << 16))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("limit", "ask"),
    [
        ("LARGEST_ENTRY_BYTES", lambda store, folder: store.fetch("artifacts", "key", folder)),
        ("LARGEST_FILE_BYTES", lambda store, folder: store.receive(SHA256, folder / "file")),
    ],
)
def test_an_object_without_end_is_refused_at_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, ask: Callable[[ObjectStore, Path], object]
) -> None:
    pytest.importorskip("aiohttp", reason="`make scale` installs it")
    monkeypatch.setattr(shared_store, limit, 1 << 20)
    said: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with contextlib.suppress(Failure):
                assert not ask(ObjectStore(f"http://127.0.0.1:{server.server_port}", said.append), tmp_path)
        finally:
            server.shutdown()
    assert [line.rpartition(": ")[2] for line in said] == ["it has more than 1048576 bytes"]
    assert sum(file.stat().st_size for file in tmp_path.rglob("*")) < 2 << 20


@pytest.mark.parametrize("limit", ["LARGEST_ENTRY_BYTES", "LARGEST_FILE_BYTES"])
def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    pytest.importorskip("fsspec", reason="`make scale` installs it")
    url = f"file://{tmp_path}/shared"
    Host(tmp_path / "a", url).build(GOOD)
    monkeypatch.setattr(shared_store, limit, 3)
    host = Host(tmp_path / "b", url)
    assert library(host.build(GOOD)) == b"library"
    assert [line.rpartition(": ")[2] for line in host.said] == ["it has more than 3 bytes"]


def test_urls_that_nothing_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="`make scale` installs it")
    with pytest.raises(UsageError, match="nix://here cannot be opened: Protocol not known: nix"):
        ObjectStore("nix://here", print)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(SetupMissing, match=r"pip install 'adreno-bench\[store\]'"):
        ObjectStore("s3://bucket/prefix", print)


def test_the_suite_names_the_store(tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_text('models = ["tiny"]\npaths = ["opencl"]\nstore = "s3://bucket/prefix"\n')
    assert load_suite(file).store == "s3://bucket/prefix"
    file.write_text('models = ["tiny"]\npaths = ["opencl"]\nstore = "bucket/prefix"\n')
    with pytest.raises(UsageError, match=r"suite.toml:3: store"):
        load_suite(file)


def test_an_entry_is_json() -> None:
    assert set(json.loads(ENTRY)) == {"entry", "files", "hash"}
