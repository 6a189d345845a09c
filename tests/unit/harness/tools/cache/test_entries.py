"""What `adreno-bench cache` lists and prunes, and what it leaves alone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_records import IDENTITY
from filelock import FileLock

from device_runner.lease import lease
from device_runner.selection import remember_identity
from device_runner.store import Store
from harness.tools.cache.command import cache as command
from harness.tools.cache.entries import DEVICES, LEFT_BEHIND, entries, kinds, prune
from harness.tools.zoo.models import ZOO

DAY_S = 86_400.0


def make(root: Path, kind: str, key: str, *, title: str = "", age_s: float = 0) -> Path:
    with Store(root, kind, sums=False).making(key, 5) as scratch:
        (scratch / "lib.so").write_bytes(b"12345")
        if title:
            (scratch / "title").write_text(f"{title}\n")
    return used(root / kind / key, age_s)


def used(path: Path, age_s: float) -> Path:
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def keys(root: Path) -> set[tuple[str, str]]:
    return {(entry.kind, entry.key) for entry in entries(root)}


def everything(root: Path) -> set[tuple[str, str]]:
    """One entry of each kind, one that a person added, and a file that nobody knows."""
    for kind in (
        "artifacts",
        "oracles",
        "pieces",
        "operators",
        "operator_results",
        "pictures",
        "llm_weights",
        "tunings",
        "trials",
        "toolchains",
        "releases",
        "harness",
        "bisect",
        "record_copies",
        "record_indexes",
        "bundles",
        "isa_toolchains",
        "isa_kernels",
        "received",
    ):
        make(root, kind, "aa")
    (root / "toolchains" / "aa.log").write_text("installed\n")
    (root / "toolchains" / "bb.log").write_text("could not be installed\n")
    (root / "bisect" / "aa.lock").touch()
    for kind in ("opencl_runtime", "opencl_layer", "clml_runtime", "isa_program", "peak_rates", "probe", "runner"):
        (root / kind / "aa").mkdir(parents=True)
        (root / kind / "aa" / "lib.so").write_bytes(b"1")
        (root / kind / "aa" / "lock").touch()
    model = next(model for model in ZOO if model.name == "tiny").onnx_file(root / "models")
    (root / "peaks").mkdir()
    (root / "peaks" / "aa.json").write_text("{}")
    remember_identity("127.0.0.1:5555", IDENTITY, root)
    for device in ("virtual", "virtual-12", "local"):
        (root / device / "files").mkdir(parents=True)
    with lease("virtual", root / "leases", timeout_s=0):
        pass
    (root / "phone-runtime" / "aa" / "files").mkdir(parents=True)
    (root / "not of ours").touch()
    folders = {(kind.name, "aa") for kind in kinds()} - {("models", "aa"), ("identities", "aa"), (DEVICES, "aa")}
    files = {("toolchains", "bb"), ("models", model.stem), ("identities", "127.0.0.1%3A5555")}
    return folders | files | {(DEVICES, device) for device in ("virtual", "virtual-12", "local")}


KEPT = {("phone-runtime", "aa")}
UNKNOWN = {("unknown", "not of ours")}


def test_everything_that_lies_there_is_listed_with_what_it_is(tmp_path: Path) -> None:
    made = everything(tmp_path)
    found = entries(tmp_path)
    assert {(entry.kind, entry.key) for entry in found} == made | KEPT | UNKNOWN
    assert len(found) == len(made) + 2
    assert all(entry.title for entry in found)
    assert sum(entry.size_bytes for entry in found) == sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())


def test_pruning_removes_what_can_be_made_again_and_nothing_else(tmp_path: Path) -> None:
    made = everything(tmp_path)
    pruned = prune(tmp_path, 0)
    assert {(entry.kind, entry.key) for entry in pruned.removed} == made
    assert pruned.in_use == []
    assert keys(tmp_path) == KEPT | UNKNOWN


def test_pruning_all_leaves_nothing_but_what_a_person_added(tmp_path: Path) -> None:
    everything(tmp_path)
    (tmp_path / "elsewhere").symlink_to(Path(__file__).parent)
    prune(tmp_path, everything=True)
    assert [path.name for path in tmp_path.iterdir()] == ["phone-runtime"]
    assert Path(__file__).exists()


def test_pruning_all_spares_the_locks_that_somebody_holds(tmp_path: Path) -> None:
    everything(tmp_path)
    lock = tmp_path / "artifacts" / ".locks" / "cc.lock"
    with lease("R5CT", tmp_path / "leases", timeout_s=0), FileLock(lock):
        prune(tmp_path, everything=True)
        assert lock.exists()
        assert sorted(file.name for file in (tmp_path / "leases").iterdir()) == ["R5CT.json", "R5CT.lock"]


def test_a_folder_that_holds_the_working_directory_is_no_mere_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis").mkdir()
    monkeypatch.chdir(tmp_path / "thesis")
    assert prune(tmp_path, everything=True).removed == []
    assert (tmp_path / "thesis").exists()


def test_an_entry_has_a_size_a_title_and_what_lies_beside_it(tmp_path: Path) -> None:
    make(tmp_path, "toolchains", "aa", title="0.26.0")
    (tmp_path / "toolchains" / "aa.log").write_text("123")
    (entry,) = entries(tmp_path)
    assert (entry.title, entry.size_bytes) == ("0.26.0", len("12345") + len("0.26.0\n") + len("123"))


def test_pruning_removes_what_was_not_used_for_long(tmp_path: Path) -> None:
    make(tmp_path, "artifacts", "aa", title="the aa", age_s=2 * DAY_S)
    make(tmp_path, "artifacts", "bb", title="the bb")
    removed = prune(tmp_path, DAY_S).removed
    assert [(entry.key, entry.title, entry.size_bytes) for entry in removed] == [("aa", "the aa", 12)]
    assert keys(tmp_path) == {("artifacts", "bb")}


def test_finding_an_entry_keeps_it_from_being_pruned(tmp_path: Path) -> None:
    make(tmp_path, "artifacts", "aa", age_s=2 * DAY_S)
    Store(tmp_path, "artifacts").find("aa")
    assert prune(tmp_path, DAY_S).removed == []


def test_a_model_that_is_taken_again_counts_as_used(tmp_path: Path) -> None:
    tiny = next(model for model in ZOO if model.name == "tiny")
    used(tiny.onnx_file(tmp_path / "models"), 2 * DAY_S)
    tiny.onnx_file(tmp_path / "models")
    assert prune(tmp_path, DAY_S).removed == []


def test_what_somebody_makes_or_bisects_now_stays(tmp_path: Path) -> None:
    make(tmp_path, "bisect", "aa")
    with Store(tmp_path, "artifacts").making("bb", 5) as scratch, FileLock(tmp_path / "bisect" / "aa.lock"):
        (scratch / "lib.so").touch()
        pruned = prune(tmp_path, 0)
        assert pruned.removed == []
        assert {entry.kind for entry in pruned.in_use} == {"bisect", "artifacts"}
    assert keys(tmp_path) == {("bisect", "aa"), ("artifacts", "bb")}


def test_a_revision_that_a_process_keeps_stays_as_long_as_the_process_lives(tmp_path: Path) -> None:
    folder = make(tmp_path, "toolchains", "aa")
    script = "import pathlib, sys; from device_runner.store import keep; keep(pathlib.Path(sys.argv[1]))"
    script += "; print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "1\n"
        assert prune(tmp_path, 0).removed == []
        process.communicate("\n", timeout=120)
    assert [entry.key for entry in prune(tmp_path, 0).removed] == ["aa"]


def test_a_device_that_is_held_stays_and_with_it_what_was_used_since(tmp_path: Path) -> None:
    for name in ("virtual", "virtual-2"):
        (tmp_path / name / "files").mkdir(parents=True)
        used(tmp_path / name / "files", 60)
        used(tmp_path / name, 60)
    make(tmp_path, "artifacts", "before", age_s=60)
    make(tmp_path, "artifacts", "since", age_s=-5)
    with lease("virtual", tmp_path / "leases", timeout_s=0):
        pruned = prune(tmp_path, 0)
        (tmp_path / "virtual" / "files" / "log").touch()
    assert {entry.key for entry in pruned.removed} == {"before", "virtual-2"}
    assert {entry.key for entry in pruned.in_use} == {"virtual", "since"}
    assert keys(tmp_path) == {(DEVICES, "virtual"), ("artifacts", "since")}


def test_what_a_killed_process_left_goes_but_not_what_is_being_written(tmp_path: Path) -> None:
    make(tmp_path, "oracles", "aa")
    scratch = tmp_path / "oracles" / ".bb.12345678"
    scratch.mkdir()
    for name, age_s in ((".0123.new", 3600), (".4567.new", 0)):
        (tmp_path / "oracles" / name).write_text("x")
        used(tmp_path / "oracles" / name, age_s)
    assert {entry.key for entry in entries(tmp_path) if entry.title == LEFT_BEHIND} == {
        ".bb.12345678",
        ".0123.new",
        ".4567.new",
    }
    prune(tmp_path, 0)
    assert keys(tmp_path) == {("oracles", ".4567.new")}


def test_the_command_says_what_it_removed_and_what_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    make(tmp_path, "releases", "aa")
    make(tmp_path, "bisect", "bb", title="bisection of tiny")
    command()
    said = capsys.readouterr().out
    assert "the repository of TVM's releases" in said
    assert "bisection of tiny" in said
    with FileLock(tmp_path / "bisect" / "bb.lock"):
        command(prune=True, everything=True)
    assert capsys.readouterr().out == "removed 1 entry, 5 B\nkept 1 entry, 23 B: in use\n"
