"""A file is written whole, also when several write it at once, and nothing else is left in its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from device_runner.files import write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_processes_that_write_one_file_at_once_never_show_half_of_it(tmp_path: Path) -> None:
    file = write_whole(tmp_path / "file", "0" * 100_000)
    code = (
        "import sys; from pathlib import Path; from device_runner.files import append_lines, write_whole\n"
        "for _ in range(200): write_whole(Path(sys.argv[1]), sys.argv[2] * 100_000)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(file), digit], env=os.environ) for digit in "12"]
    while any(writer.poll() is None for writer in writers):
        content = file.read_text()
        assert content == content[0] * 100_000
    assert [writer.wait(300) for writer in writers] == [0, 0]
    assert names(tmp_path) == ["file"]


def test_a_writer_that_is_asked_to_end_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import signal, sys; from pathlib import Path; from device_runner.files import append_lines, write_whole\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('ready', flush=True)\n"
        "while True: write_whole(Path(sys.argv[1]), 'x' * 1_000_000)"
    )
    for _ in range(5):
        command = [sys.executable, "-c", code, str(tmp_path / "file")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as writer:
            assert writer.stdout
            writer.stdout.readline()
            writer.send_signal(signal.SIGTERM)
        assert names(tmp_path) in ([], ["file"])
