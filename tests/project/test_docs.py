"""What the documentation names exists: variables, suite files, commands and options."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from benchmarks import api_page, commands_page, docs_size
from harness.cli import every_command
from harness.cli.commands import load_command

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "baselines").glob("*.md")])
SOURCES = [*ROOT.glob("harness/**/*.py"), *ROOT.glob("device_runner/**/*"), ROOT / "Makefile"]
OF_TESTS = sorted(ROOT.glob("tests/**/*.py"))
OURS = re.compile(r"\bADRENO_BENCH_[A-Z0-9_]*[A-Z0-9]\b")
READ = re.compile(r"""(?:environ\.get\(|environ\[|getenv\()["']([A-Z0-9_]+)["']""")
COMMAND = re.compile(r"^(?:\$ |[A-Z_]+=\S+ )?adreno-bench ([^|&<>]*?)(?:#.*)?$", re.MULTILINE)
COMMAND_IN_A_SENTENCE = re.compile(r"`adreno-bench ([^`|&<>]*)`")
ELIDED = re.compile(r"\.\.\.|…|\bCOMMAND\b|\[")
"""Of an example that is not whole."""
OF_A_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS_BY_NAME = {command.name: command for command in every_command()}
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
    named = set(re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+|CXX|HOME|TERM)`", page))
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
def test_every_command_that_a_page_shows_parses(page: Path) -> None:
    text = page.read_text("utf-8")
    blocks = (block.replace("\\\n", " ") for block in OF_A_FENCE.findall(text))
    whole = [line for block in blocks for line in COMMAND.findall(block) if not ELIDED.search(line)]
    named = [line for line in COMMAND_IN_A_SENTENCE.findall(OF_A_FENCE.sub("", text)) if not ELIDED.search(line)]
    shown = tuple(f"{name} " for name in re.findall(r"Command\(\"(\w+)\"", text))  # of a tool that the page writes
    refused = {line: refusal(line) for line in [*whole, *named] if not line.startswith(shown)}
    of_a_sentence = {line for line in named if "requires an argument" in refused[line]}  # it names an option alone
    assert {line: why for line, why in refused.items() if why and line not in of_a_sentence} == {}


def refusal(line: str) -> str:
    """Why the program does not take these words; nothing is run, and no file has to be there."""
    words = shlex.split(line)
    if not words or words[0].startswith("-"):
        return "" if set(words) <= {"--help", "--version", "--install-completion"} else "no such option"
    if words[0] not in COMMANDS_BY_NAME:
        return "no such command"
    command: Any = load_command(COMMANDS_BY_NAME[words[0]])
    name, *words = words
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    if hasattr(command, "commands") or not words or "--help" in words:
        return ""  # a command that a sentence names without its arguments
    try:
        command.make_context(name, words)
    except Exception as error:  # typer has its own copy of click's
        return str(error) or type(error).__name__
    return ""


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "VALUE"


def texts_of(source: Path) -> Iterator[str]:
    """The texts of a module without its docstrings, with a word for each value that is written into them."""
    tree = ast.parse(source.read_text("utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield re.sub(r"(?<![\w-])VALUE", "word", "".join(_part(part) for part in node.values)).replace("VALUE", "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (inside | alone):
            yield node.value.replace("{}", "word")


@pytest.mark.parametrize("package", ["harness", "device_runner"])
def test_every_command_that_a_message_names_runs_as_printed(package: str) -> None:
    named = {
        line
        for file in ROOT.glob(f"{package}/**/*.py")
        for text in texts_of(file)
        for line in COMMAND_IN_A_SENTENCE.findall(text)
    }
    assert named
    assert {line: why for line in named if (why := refusal(line))} == {}


def test_what_does_not_parse_is_refused() -> None:
    assert refusal("run --case '*' --device virtual") == ""
    assert refusal("show --nonsense")
    assert refusal("rum --quick")


def test_the_page_of_commands_is_what_help_says() -> None:
    assert commands_page.PAGE.read_text("utf-8") == commands_page.page(), "python -m benchmarks.commands_page"


def test_the_page_of_the_python_interface_is_what_its_docstrings_say() -> None:
    assert api_page.PAGE.read_text("utf-8") == api_page.page(), "python -m benchmarks.api_page"


def test_the_prose_stays_short_enough_to_be_read() -> None:
    counts = docs_size.pages()
    assert sum(counts.values()) <= docs_size.MOST_WORDS
    long = ("explanation/quirks.md", "how-to/phones.md", "explanation/virtual-device.md")
    assert {name for name in long if counts[name] > docs_size.MOST_WORDS_OF_A_PAGE} == set()


def options_of(command: Any) -> set[str]:
    """The options of a command, and of those below it."""
    inner = getattr(command, "commands", {}).values()
    own = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return own.union(*map(options_of, inner))


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_an_option_beside_the_short_name_of_a_command_is_one_of_it(page: Path) -> None:
    spans = re.findall(r"`([a-z]+)( [^`\n]*)`", page.read_text("utf-8"))
    named = {(name, option) for name, rest in spans for option in re.findall(r" (--[a-z-]+)", rest)}
    options = {name: options_of(load_command(command)) for name, command in COMMANDS_BY_NAME.items()}
    assert {(name, option) for name, option in named if option not in options.get(name, {option})} == set()
