"""What the documentation names exists: variables, suite files, commands and options."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from harness.cli import COMMANDS

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "baselines").glob("*.md")])
SOURCES = [*ROOT.glob("harness/**/*.py"), *ROOT.glob("device_runner/**/*"), ROOT / "Makefile"]
OF_TESTS = sorted(ROOT.glob("tests/**/*.py"))
OURS = re.compile(r"\bADRENO_BENCH_[A-Z0-9_]*[A-Z0-9]\b")
READ = re.compile(r"""(?:environ\.get\(|environ\[|getenv\()["']([A-Z0-9_]+)["']""")
COMMAND = re.compile(r"^(?:\$ )?adreno-bench ([^|&<>]*?)(?:#.*)?$", re.MULTILINE)
OF_A_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS_BY_NAME = {command.name: command for command in COMMANDS}
MADE_BY_THE_READER = ("tiny.toml", "my.toml", "light/light.toml")
"""Suite files of examples; each page that uses one says what is in it, or has the command that writes it."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text_of(files: list[Path]) -> str:
    return "\n".join(
        file.read_text("utf-8") for file in files if file.suffix in (".py", ".cc", ".h", "") and file.is_file()
    )


def test_the_page_of_environment_variables_has_those_that_the_sources_read_and_no_others() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    sources = text_of(SOURCES)
    named = set(re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+|CXX|HOME)`", page))
    read = set(OURS.findall(sources)) | set(READ.findall(sources))
    assert read - named == set()
    tests = text_of(OF_TESTS)
    assert {name for name in named if name not in sources + tests} == set()


@every_page
def test_every_suite_file_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"[\w./-]+\.toml\b", page.read_text("utf-8")))
    tracked = subprocess.run(["git", "ls-files", "*.toml"], cwd=ROOT, capture_output=True, text=True, check=True)
    known = {Path(name).name for name in tracked.stdout.split()}
    assert {name for name in named if Path(name).name not in known and name not in MADE_BY_THE_READER} == set()


@every_page
def test_every_command_and_option_that_a_page_shows_exists(page: Path) -> None:
    for block in OF_A_FENCE.findall(page.read_text("utf-8")):
        for line in COMMAND.findall(block.replace("\\\n", " ")):
            words = shlex.split(line)
            assert words[0] in COMMANDS_BY_NAME, line
            command: Any = COMMANDS_BY_NAME[words.pop(0)].load()
            while words and words[0] in getattr(command, "commands", ()):
                command = command.commands[words.pop(0)]
            parameters = command.get_params(command.context_class(command))
            known = {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert options <= known, line
