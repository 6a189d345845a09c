"""Write docs/reference/commands.md from what `adreno-bench COMMAND --help` says.

python -m benchmarks.commands_page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.cli import every_command
from harness.cli.commands import load_command

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
HEAD = """# Commands

Every command with its options, as `--help` prints them. `python -m benchmarks.commands_page` writes this page.

```
adreno-bench --help
adreno-bench run --help
```
"""
EVERYWHERE = "--help"


def page() -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    for group, commands in groupby(every_command(), key=lambda command: command.group):
        parts.append(f"## {group}\n")
        for command in commands:
            parts += _command(command.name, load_command(command), 3)
    return "\n".join(parts)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"{'#' * level} {name}\n"
    yield f"{_text(command.help)}\n"
    if command.epilog:
        yield f"{_text(command.epilog)}\n"
    if inner := getattr(command, "commands", None):
        for word, one in inner.items():
            yield from _command(f"{name} {word}", one, level + 1)
        return
    yield f"```\nadreno-bench {name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    options = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    for panel, found in groupby(sorted(options, key=_panel), key=_panel):
        if rows := [_row(one, context) for one in found if EVERYWHERE not in one.opts]:
            yield "\n".join([f"| {panel or 'option'} | |", "|---|---|", *rows]) + "\n"


def _panel(option: Any) -> str:
    return getattr(option, "rich_help_panel", None) or ""


def _row(option: Any, context: Any) -> str:
    names, text = option.get_help_record(context)
    names, text = names.replace("|", "\\|"), " ".join(text.split()).replace("|", "\\|")
    return f"| `{names}` | {text} |"


def _text(text: str) -> str:
    return text.replace("\b\n", "").strip()


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
