"""Commands, whose modules are imported when they are called, and what to install where another module is missing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import metadata
from itertools import groupby
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command, get_group

from device_runner.names import load, suggestion
from harness.base.terminal import tell
from harness.base.tool import Command, tools

HELP_NAMES = ["-h", "--help"]


@cache
def load_command(command: Command) -> TyperCommand | TyperGroup:
    """Import a command."""
    target = load(command.place or f"harness.cli.{command.name}:{command.name}")
    if isinstance(target, typer.Typer):
        group = get_group(target)
        group.suggest_commands = False  # `usage_hint` does
        for inner in group.commands.values():
            inner.help = _unwrapped(inner.help)
            _name_values(inner)
        _name_values(group)
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(command.name, help=_unwrapped(target.__doc__))(target)
    click_command = get_command(alone)
    assert isinstance(click_command, TyperCommand)
    _name_values(click_command)
    return click_command


def _name_values(command: Any) -> None:
    """Write the name of an option where typer's help writes a type of Python, such as `<list[str]>` or `<bool>`."""
    with typer.Context(command, help_option_names=HELP_NAMES) as context:
        parameters = command.get_params(context)
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type = lambda ctx: None  # its name says enough
        elif parameter.metavar is None and not parameter.type_descriptor.is_choice:
            is_flag = getattr(parameter, "is_flag", False)
            parameter.metavar = "" if is_flag else parameter.opts[0].strip("-").replace("-", "_").upper()


def _unwrapped(text: str | None) -> str:
    """Docstring with one line for each paragraph: the terminal's width folds them."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (text or "").split("\n\n"))


class DeferredCommand(TyperCommand):
    """Stands for a command until that is called. Its callback takes no arguments and imports the command."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself, which runs, shows its help or completes a word."""
        assert self.callback
        return self.callback().make_context(info_name, args, parent, **extra)


class GroupedCommands(TyperGroup):
    """The program. Its help lists the commands by group, without rich, to import which takes three times as long."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"suggest_commands": False})  # `usage_hint` does

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is typed. The old spelling of one, as an option of another, calls it as well."""
        for command in (command for tool in tools() for command in tool.commands if command.formerly):
            name, option = command.formerly.split()
            if args[0] == name and option in args:
                if not ctx.resilient_parsing:
                    tell(f"adreno-bench: `{command.formerly}` is now `{command.name}`")
                args = [command.name, *(word for word in args[1:] if word != option)]
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, text, options and commands."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        width = max(map(len, self.commands))
        for group, commands in groupby(self.commands.values(), lambda command: command.rich_help_panel):  # type: ignore[attr-defined]
            with formatter.section(group):
                formatter.write_dl([((command.name or "").ljust(width), command.help or "") for command in commands])


def _loader(command: Command) -> Callable[[], TyperCommand | TyperGroup]:
    """Return a function that imports a command: typer takes functions only."""
    return lambda: load_command(command)


def add_commands(app: typer.Typer, commands: Iterable[Command]) -> None:
    """Add commands to a program, none of which is imported before it is called."""
    for command in commands:
        deferred = app.command(command.name, cls=DeferredCommand, help=command.help, rich_help_panel=command.group)
        deferred(_loader(command))


_IN_OTHER_WORDS = {"Value error, ": "", "argument(s)": "argument", "No such option: ": "there is no option "}
"""Words of typer and pydantic, and ours instead."""


_NO_COMMAND = re.compile(r"No such command '(.*)'")


def usage_line(error: TyperException) -> str:
    """Return the error in a command line."""
    is_unknown = hasattr(error, "possibilities")
    message = str(error.message) if is_unknown else error.format_message()
    for theirs, ours in _IN_OTHER_WORDS.items():
        message = message.replace(theirs, ours)
    return f"{message[0].lower()}{message[1:]}".removesuffix(".")


def usage_hint(error: TyperException, words: Sequence[str]) -> str:
    """Return the option or command that was meant, or the command that shows what there is.

    Args:
        error: What typer raised.
        words: The command line.
    """
    context: Any = getattr(error, "ctx", None)
    if files := _model_files(error.format_message(), words):
        return f"`{_with_models(context, files)}`"
    listing = f"see `{context.command_path if context else ' '.join(['adreno-bench', *words[:1]])} -h`"
    if command := _NO_COMMAND.match(error.format_message()):
        return suggestion(command[1], context.command.commands, otherwise=listing, choices=()).strip()
    if not context or not (option := getattr(error, "option_name", "")):
        return listing
    parameters = context.command.params
    if any(parameter.name == option.lstrip("-") for parameter in parameters if parameter.param_type_name == "argument"):
        return f"write its value without {option}"
    options = [name for parameter in parameters for name in parameter.opts if name.startswith("-")]
    return suggestion(option, options, otherwise=listing, choices=()).strip()


_EXTRA = re.compile(r"(?:Got unexpected extra argument\(s\) \(|No such command ')(.*)['\)]")


def _model_files(message: str, words: Sequence[str]) -> list[str]:
    """Return all files of models in a command that has one where no argument is taken; none if that is another word."""
    from harness.base.model import SUFFIXES

    match = _EXTRA.match(message)
    if not match or not match[1].endswith(SUFFIXES):
        return []
    return [shlex.quote(word.removeprefix("--model=")) for word in words if word.endswith(SUFFIXES)]


def _with_models(context: Any, files: Sequence[str]) -> str:
    """Return the command that takes these files of models."""
    if any("--model" in parameter.opts for parameter in context.command.params):
        return " ".join([context.command_path, *(f"--model {file}" for file in files)])
    if not context.parent:
        return f"{context.command_path} run --model {files[0]}"
    return f"{context.find_root().command_path} inspect {files[0]}"


_PACKAGE = "adreno-bench"
_NOT_FOR_USERS = "dev"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*?(?:extra == ['\"](?P<extra>\w+)['\"])?$")


def how_to_install(module: str) -> str:
    """Return the command that installs a missing foreign module.

    Assumes that the distribution has the module's name; else the command installs all requirements.
    """
    try:
        lines = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        lines = []
    name = module.lower()
    required = [match for line in lines if (match := _REQUIREMENT.match(line))]
    matches = [match for match in required if re.sub(r"[-_.]+", "_", match["name"]).lower() == name]
    extras = [match["extra"] for match in matches if match["extra"] not in (None, _NOT_FOR_USERS)]
    if extras:
        return f"pip install '{_PACKAGE}[{extras[0]}]'"
    return f"pip install {module if matches else _PACKAGE}"
