"""A file is written whole, also when several write it at once, and nothing else is left in its folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.files import SCRATCH_PREFIX, append_lines, require_name, scratch_folder, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_are_written_with_the_folders_above_them(tmp_path: Path) -> None:
    assert write_whole(tmp_path / "a/b/text", "größer\n").read_bytes() == "größer\n".encode()
    assert write_whole(tmp_path / "a/b/bytes", b"\xff\0").read_bytes() == b"\xff\0"
    assert names(tmp_path / "a/b") == ["bytes", "text"]


def test_a_file_has_the_permissions_that_any_other_file_would_have(tmp_path: Path) -> None:
    """Baselines are kept in version control and read by others."""
    (tmp_path / "plain").write_text("")
    assert write_whole(tmp_path / "whole", "").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    assert write_whole(tmp_path / ("n" * 255), "content").read_text() == "content"


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", b"data")
    assert names(tmp_path) == ["taken"]


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to("/dev/null")
    for place, name in ((fifo, "a FIFO"), (link, "a device")):
        with pytest.raises(FileExistsError, match=f"This is {name}, not a file"):
            write_whole(place, "text")
    assert fifo.is_fifo()
    assert link.is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fifo", "link"]


def test_a_write_that_is_interrupted_leaves_what_there_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_whole(tmp_path / "file", "old")

    def interrupted(_scratch: Path, _file: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(file, "new")
    assert (names(tmp_path), file.read_text()) == (["file"], "old")


def test_a_full_disk_leaves_what_there_was(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", "old")
    code = (
        "import resource, signal, sys; from pathlib import Path; from device_runner.files import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_whole(Path(sys.argv[1]), 'new' * 1000)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OSError" in done.stderr
    assert (names(tmp_path), (tmp_path / "file").read_text()) == (["file"], "old")


def test_threads_that_write_one_file_at_once_never_show_half_of_it(tmp_path: Path) -> None:
    """They share a process id, so a scratch file named by it would be the same."""
    contents = [letter * 200_000 for letter in "abcd"]
    file = write_whole(tmp_path / "file", contents[0])
    stop, seen, failures = threading.Event(), set(), []

    def write(content: str) -> None:
        try:
            while not stop.is_set():
                write_whole(file, content)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for _ in range(300):
        seen.add(file.read_text())
    stop.set()
    for thread in threads:
        thread.join(300)
    assert seen <= set(contents)
    assert not failures
    assert names(tmp_path) == ["file"]


@given(st.lists(st.sampled_from([b"one\n", b"two\n", b"torn"]), max_size=6))
def test_lines_that_are_added_are_whole_whatever_was_torn_before(parts: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "new" / "log"
        for part in parts:
            append_lines(file, part)
        found = file.read_bytes().splitlines() if parts else []
    assert found == [part.strip() for part in parts]


@pytest.mark.parametrize("name", ["phone-Adreno_740-cc0c2706", "tiny-opencl-float32-untuned", "größe", "a.b"])
def test_a_name_that_stays_in_its_folder_may_be_part_of_a_file_name(name: str) -> None:
    assert require_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../out", "a/b", "/etc", ".hidden", "a\0b", "a\nb", "-rf"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a file name"):
        require_name(name)


HOLDER = """
import sys, time
from device_runner.files import scratch_folder
with scratch_folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        held = Path(holder.stdout.readline().strip())
        try:
            with scratch_folder() as own:
                assert sorted(temporary.iterdir()) == sorted([held, own])
        finally:
            holder.kill()
    assert list(temporary.iterdir()) == [held]
    with scratch_folder() as own:
        assert list(temporary.iterdir()) == [own]
    assert list(temporary.iterdir()) == []


def test_what_others_put_among_temporary_files_leads_nowhere(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").touch()
    (temporary / f"{SCRATCH_PREFIX}link").symlink_to(tmp_path / "home")
    os.mkfifo(temporary / f"{SCRATCH_PREFIX}fifo")
    (temporary / f"{SCRATCH_PREFIX}file").touch()
    with scratch_folder() as own:
        assert len(list(temporary.iterdir())) == 4
    assert not own.exists()
    assert (tmp_path / "home" / "file").exists()


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.mkdtemp
    removed: list[str] = []

    def hurried(prefix: str) -> str:
        folder = made(prefix=prefix)
        if not removed:
            removed.append(folder)
            Path(folder).rmdir()
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", hurried)
    with scratch_folder() as own:
        assert own.is_dir()
    assert str(own) not in removed
    assert list(temporary.iterdir()) == []


def test_a_folder_that_takes_no_files_is_told_by_the_name_of_the_file() -> None:
    with pytest.raises(OSError, match=r"page\.html") as raised:
        write_whole(Path("/proc/page.html"), "")
    assert raised.value.filename == "/proc/page.html"
