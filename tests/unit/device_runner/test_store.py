"""The store: whole entries or none."""

import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_runner.failures import RigFailure
from device_runner.store import SUMS, Store, cache_root, key_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,  # a hundred, as usual, take four times as long and show no more
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), JSON, min_size=1))
def test_a_key_does_not_depend_on_the_order_of_facts(facts: dict[str, object]) -> None:
    assert key_of(facts) == key_of(dict(reversed(facts.items())))
    assert key_of({**facts, "x": 1}) != key_of({**facts, "x": 2})


def test_an_entry_appears_when_the_making_ends_well(tmp_path: Path) -> None:
    store = Store(tmp_path, "artifacts")
    with store.making("k", 5) as scratch:
        (scratch / "lib.so").write_bytes(b"x")
        assert store.find("k") is None
    folder = store.find("k")
    assert folder is not None
    assert (folder / "lib.so").read_bytes() == b"x"


def test_a_making_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, "artifacts")

    def fail() -> None:
        with store.making("k", 5) as scratch:
            (scratch / "half").write_bytes(b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert store.find("k") is None
    assert [entry for entry in store.folder.iterdir() if entry.name != ".locks"] == []


def test_of_several_who_want_an_entry_at_once_one_makes_it(tmp_path: Path) -> None:
    store, made = Store(tmp_path, "artifacts"), []

    def fill(scratch: Path) -> None:
        time.sleep(0.05)
        made.append(1)
        (scratch / "x").write_text("")

    def make() -> None:
        assert (store.obtain("k", fill, 10) / "x").exists()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_who_waits_too_long_is_told_why(tmp_path: Path) -> None:
    store = Store(tmp_path, "artifacts")
    second = store.making("k", 0.05)
    with store.making("k", 5), pytest.raises(RigFailure, match="another process has been building k"), second:
        pass


def test_a_full_or_forbidden_disk_is_one_line_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file where the folder should be")
    with (
        pytest.raises(RigFailure, match=r"cannot write to the store .*ADRENO_BENCH_CACHE"),
        Store(tmp_path, "artifacts").making("k", 1),
    ):
        pass


def test_the_cache_is_where_the_person_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "here"))
    assert cache_root() == tmp_path / "here"
    monkeypatch.delenv("ADRENO_BENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "adreno-bench"


def an_entry(store: Store, content: str = "whole") -> Path:
    def make(scratch: Path) -> None:
        (scratch / "deep").mkdir()
        (scratch / "deep" / "lib.so").write_text(content)

    return store.obtain("key", make, 60)


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "sums"])
def test_an_entry_that_is_not_what_was_kept_is_named_and_made_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path, "artifacts")
    library = an_entry(store) / "deep" / "lib.so"
    file = library.parents[1] / SUMS if damage == "sums" else library
    assert store.find("key")
    if damage == "gone":
        file.unlink()
    else:
        file.write_text({"flipped": "whOle", "cut": "wh", "sums": "{"}[damage])
    assert (an_entry(store, "again") / "deep" / "lib.so").read_text() == "again"
    assert str(file) in caplog.text
    assert [path.name for path in store.folder.iterdir() if path.name != ".locks"] == ["key"]


def test_an_entry_of_an_earlier_version_is_taken_as_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path, "artifacts")
    folder = an_entry(store)
    (folder / SUMS).unlink()
    (folder / "deep" / "lib.so").write_text("other")
    assert store.find("key") == folder


def test_an_entry_is_read_once_until_a_file_of_it_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, "artifacts")
    library = an_entry(store) / "deep" / "lib.so"
    with monkeypatch.context() as context:
        context.setattr("device_runner.store.sha256_of", lambda _: pytest.fail("it was read again"))
        assert store.find("key")
    os.utime(library, (1, 1))
    assert store.find("key")


@pytest.mark.parametrize("key", ["../outside", "", "a/b", ".locks"])
def test_what_can_be_no_key_is_not_there(tmp_path: Path, key: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "artifacts" / "a" / "b").mkdir(parents=True)
    (tmp_path / "artifacts" / ".locks").mkdir()
    assert Store(tmp_path, "artifacts").find(key) is None


def test_what_a_killed_process_left_of_a_key_is_removed_with_the_next_making(tmp_path: Path) -> None:
    store = Store(tmp_path, "artifacts")
    with store.making("key", 1.0) as scratch:
        name = scratch.name
    left, other = (tmp_path / "artifacts" / folder for folder in (name, ".key.post1.0123abcd"))
    for folder in (left, other):
        folder.mkdir(parents=True)
        (folder / "part").touch()
    store.obtain("key", lambda scratch: (scratch / "file").touch(), 1.0)
    assert (left.exists(), other.exists()) == (False, True)
