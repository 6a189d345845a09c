"""The installed pytest plugin. It does nothing unless `harness.pytest_plugin` is among what pytest is asked to run.

Other people's suites may have a `--device` of their own, so the options are added only then; and nothing of the
harness is imported before.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "harness.pytest_plugin"
ACTIVE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our options if this run is ours."""
    config = pluginmanager.get_plugin("pytestconfig")
    if config and asks_for_us([str(argument) for argument in config.invocation_params.args]):
        config.stash[ACTIVE] = True
        _rest().add_options(parser)


def asks_for_us(arguments: Sequence[str]) -> bool:
    """Return whether the command line names this package, as a module or by its path."""
    here = Path(__file__).parent
    names = [argument.split("::")[0] for argument in arguments if not argument.startswith("-")]
    return any(name == PACKAGE or name.startswith(f"{PACKAGE}.") or _within(name, here) for name in names)


def _within(name: str, folder: Path) -> bool:
    path = Path(name).absolute()
    return path == folder or folder in path.parents


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the rest if this run is ours."""
    if config.stash.get(ACTIVE, False):
        config.pluginmanager.register(_rest())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """`-n auto`: one worker for each device."""
    if not config.stash.get(ACTIVE, False):
        return None
    return len(_rest().devices(config))


def _rest() -> Any:
    """Return the module that a tool has for our runs."""
    from harness.base.tool import place_of

    return import_module(place_of("pytest_plugin"))
