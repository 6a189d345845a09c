"""The commands of docs/tutorial/first-hour.md print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from page_blocks import blocks
from waiting import LONG_S

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("warm_driver")]

PAGE = (Path(__file__).parents[2] / "docs/tutorial/first-hour.md").read_text(encoding="utf-8")
RUN_HERE, _, _ = PAGE.partition("## 7. The history")
"""The history installs two releases of TVM: tests/e2e/test_history.py does that."""
SHORT_S = 1
"""Instead of the budget of the page's suite: no word of it depends on how long a case is sampled."""
WORD = re.compile(r"[A-Za-z]{3,}")
OF_THE_MACHINE = re.compile(r"all .* are unsteady.*|unsteady.*|: ok, unsteady|virtual-\S+|/\S+|\d+ files?|nothing")
"""What depends on the machine, on how busy it is, and on what was built before."""


def told(page: str) -> list[tuple[str, str, int]]:
    """Each command with the output and the exit code that the page shows of it."""
    found: list[tuple[str, str, int]] = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command == "echo $?":
                found[-1] = (*found[-1][:2], int(output))
            else:
                found.append((command, output, 0))
    return found


STEADY = re.compile(r"\d+ workarounds .*|.* \(owner: .*|.*: wrong: .*|.*: wrong-result: .*", re.MULTILINE)
"""Lines whose numbers no machine changes."""


def folder_of_the_suite(checkout: Path, home: Path) -> Path:
    """Return the folder to which the first lines of the page lead from a checkout, which has a suite file."""
    checkout.mkdir()
    (checkout / "adreno-bench.toml").touch()
    lines = blocks(PAGE)[0].replace("make demo", "true") + "\npwd"
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(["bash", "-ec", lines], cwd=checkout, env=environment, capture_output=True, check=True)
    return Path(os.fsdecode(done.stdout).strip())


def test_its_first_lines_lead_to_a_folder_without_a_suite(tmp_path: Path) -> None:
    assert not list(folder_of_the_suite(tmp_path / "checkout", tmp_path).iterdir())


def words(text: str) -> set[str]:
    return set(WORD.findall(OF_THE_MACHINE.sub(" ", text)))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.long
def test_its_commands_print_what_it_shows_and_end_as_it_says(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine.py").write_text(blocks(PAGE, "python")[0], encoding="utf-8")
    subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, check=True)
    program = [sys.executable, "-c", "from harness.cli import main; main()"]
    environment = {**os.environ, "ADRENO_BENCH_CACHE": str(cache), "COLUMNS": "200"}
    for command, output, code in told(RUN_HERE):
        name, *arguments = shlex.split(command)
        assert name == "adreno-bench"
        asked = [*program, *arguments]
        done = subprocess.run(
            asked, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LONG_S, check=False
        )
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        assert words(output) <= words(done.stdout + done.stderr), f"{command}\n{done.stdout}{done.stderr}"
        assert set(STEADY.findall(output)) <= set(done.stdout.splitlines()), f"{command}\n{done.stdout}"
        if arguments[0] == "init":
            suite = tmp_path / "adreno-bench.toml"
            suite.write_text(suite.read_text().replace("# budget_s = 20 ", f"budget_s = {SHORT_S} "))
