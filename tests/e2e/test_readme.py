"""The commands of README.md run from top to bottom, as they are written, in a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from page_blocks import blocks
from phone_libraries import runtime_in
from waiting import LONG_S

from harness.base.outcome import ExitCode
from harness.judge.history.releases import checkout
from harness.tools.runtime.check import host_interface

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("waiting_inferences")]

SUITE = 'models = ["digits"]\npaths = ["opencl", "texture"]\nbudget_s = 0.1\nsamples = 10\n'
"""Instead of the suite of the repository, which takes half an hour."""
OPEN = {"adreno-bench compare a.onnx b.onnx --path opencl": {ExitCode.GOOD, ExitCode.UNDECIDED}}
"""Commands that may end in several ways: two equal networks on a busy host may stay undecided."""
SHORTER = {"make test\n": "make --dry-run test\n"}
"""What would run this very test."""
INSTALLS = re.compile(r"^pipx? .*$", re.MULTILINE)
"""What would change this environment: `tests/e2e/test_wheel.py` has one of its own."""


def commands(page: str) -> str:
    """Return the lines of the page's blocks without a language, but for tables, in one script."""
    return "".join(block for block in blocks(page) if "---" not in block)


def copy_of_the_repository(folder: Path) -> Path:
    """Copy this checkout, with what is not committed, and with this environment in place of its own."""
    repo = folder / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", "clone", "--quiet", "--shared", checkout(), repo], check=True)
    changes = subprocess.run(["git", "-C", checkout(), "diff", "HEAD", "--binary"], capture_output=True, check=True)
    if changes.stdout:
        subprocess.run([*git, "apply"], input=changes.stdout, check=True)
    (repo / "adreno-bench.toml").write_text(SUITE)
    here = sysconfig.get_path("purelib")
    link = f"open(sysconfig.get_path('purelib') + '/all.pth', 'w').write('{{build_dir}}\\n{here}')"
    conf = json.loads(re.sub(r"^ *//.*$", "", (repo / "asv.conf.json").read_text(), flags=re.MULTILINE))
    conf |= {"build_command": [], "install_command": [f'in-dir={{env_dir}} python -c "import sysconfig; {link}"']}
    (repo / "asv.conf.json").write_text(json.dumps(conf))
    subprocess.run([*git, "commit", "--quiet", "--all", "--message", "as it is"], check=True)
    (repo / ".venv").mkdir()
    (repo / ".venv/bin").symlink_to(Path(sys.prefix, "bin"))
    for name in (".installed", ".program", ".phones"):
        (repo / ".venv" / name).touch()  # newer than the lock, so that make installs nothing
    tutorial = (repo / "docs/tutorial/first-hour.md").read_text(encoding="utf-8")
    (repo / "mine.py").write_text(blocks(tutorial, "python")[0], encoding="utf-8")
    subprocess.run([sys.executable, "mine.py"], cwd=repo, check=True)
    (repo / "mine.onnx").rename(repo / "net.onnx")
    for name in ("a.onnx", "b.onnx"):
        (repo / name).write_bytes((repo / "net.onnx").read_bytes())
    return repo


@pytest.mark.timeout(3600)
def test_the_commands_of_the_readme_run_as_they_are_written(tmp_path: Path, cache: Path) -> None:
    repo, runtime = copy_of_the_repository(tmp_path), runtime_in(tmp_path / "phone", interface=host_interface())
    script = commands((repo / "README.md").read_text(encoding="utf-8"))
    for written, shorter in SHORTER.items():
        assert written in script
        script = script.replace(written, shorter)
    script = INSTALLS.sub(":", script)
    script = script.replace("SERIAL", "virtual").replace("FOLDER", str(runtime))
    numbered = "".join(f"{line}\nended {number} $?\n" for number, line in enumerate(script.splitlines()))
    ended = f"ended() {{ printf '%s %s\\n' $1 $2 >>{tmp_path}/codes; }}\n"
    environment = {**os.environ, "ADRENO_BENCH_CACHE": str(cache), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", ended + numbered],
        cwd=repo,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=6 * LONG_S,
        check=False,
    )
    (repo.parent / "transcript").write_text(done.stdout)
    codes = [line.split() for line in (tmp_path / "codes").read_text().splitlines()]
    ends = [(script.splitlines()[int(number)], int(code)) for number, code in codes]
    failed = [command for command, code in ends if code not in OPEN.get(command, {ExitCode.GOOD})]
    assert not failed, done.stdout
    assert OPEN.keys() <= dict(ends).keys()
    assert re.search(r"on opencl.*; both right$", done.stdout, re.MULTILINE)
    assert len(codes) == len(script.splitlines())
    assert "wrong-result" in done.stdout  # what the demo shows
    assert (repo / "report.html").is_file()
    assert (repo / ".asv/html/index.html").is_file()
