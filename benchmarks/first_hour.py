"""Run the commands of docs/tutorial/first-hour.md, and write what they print into the page: `make first-hour`.

The history at its end is left as it is: it installs two releases of TVM.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from device_runner.store import cache_root
from harness.base.outcome import ExitCode

PAGE = Path(__file__).parent.parent / "docs" / "tutorial" / "first-hour.md"
LEFT_ALONE = "## 7. The history"
PROGRAM = [sys.executable, "-c", "from harness.cli import main; main()"]
DEADLINE_S = 1800
USUAL_CACHE = "~/.cache/adreno-bench"
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NETWORK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def transcript(commands: list[str], folder: Path) -> str:
    """Return what commands print in a folder, as a console shows it."""
    lines, code = [], 0
    for command in commands:
        lines.append(f"$ {command}")
        if command == "echo $?":
            lines.append(str(code))
            continue
        words = [*PROGRAM, *shlex.split(command)[1:]]
        environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[2])}
        done = subprocess.run(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False
        )
        code = done.returncode
        if code == ExitCode.RIG_FAILURE:
            raise SystemExit(f"the page stays as it is: {command} ended with {code}")
        printed = done.stdout.replace(str(cache_root()), USUAL_CACHE)
        lines += [line.rstrip() for line in printed.splitlines()]
    return "\n".join(lines) + "\n"


def written_anew(page: str, folder: Path) -> str:
    """Return the page with the output of its commands, which run in a folder."""
    (folder / "mine.py").write_text(_NETWORK.findall(page)[0], encoding="utf-8")
    subprocess.run([sys.executable, "mine.py"], cwd=folder, check=True)

    def block(old: re.Match[str]) -> str:
        commands = [line[2:] for line in old[1].splitlines() if line.startswith("$ ")]
        return f"```console\n{transcript(commands, folder)}```"

    return _CONSOLE.sub(block, page)


def main() -> None:
    """Write the page anew."""
    run_here, heading, rest = PAGE.read_text("utf-8").partition(LEFT_ALONE)
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(written_anew(run_here, Path(folder)) + heading + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
