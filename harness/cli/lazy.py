"""Commands whose modules are imported when they are called, so that listing them costs nothing of what they need."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


@dataclass(frozen=True)
class Command:
    """A command of the program, as far as the list of commands needs to know it."""

    name: str
    """What a person types."""
    help: str
    """The first sentence of its help."""
    module: str = ""
    """Module of `harness.cli` that defines, under its own name, a function or a group; empty if it is `name`."""

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command."""
        module = self.module or self.name
        found = getattr(import_module(f"harness.cli.{module}"), module)
        if isinstance(found, typer.Typer):
            return get_group(found)
        alone = typer.Typer(add_completion=False)
        alone.command(self.name)(found)
        command = get_command(alone)
        assert isinstance(command, TyperCommand)
        return command


class Deferred(TyperCommand):
    """Stands for a command until that is called. Its callback takes no arguments and imports the command."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself, which is what runs, shows its help or completes a word from now on."""
        assert self.callback
        return self.callback().make_context(info_name, args, parent, **extra)


def add_commands(app: typer.Typer, commands: tuple[Command, ...]) -> None:
    """Add commands to a program, none of which is imported before it is called."""
    for command in commands:
        app.command(command.name, cls=Deferred, help=command.help)(command.load)
