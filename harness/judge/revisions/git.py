"""git, called with a deadline and deaf to the user's configuration."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from device_runner.failures import RigFailure, SetupMissing
from harness.base.process import complaint_of, run_to_end

TIMEOUT_S = 60.0
_IDENT = {"NAME": "adreno-bench", "EMAIL": "adreno-bench@localhost"}


class GitFailure(RigFailure):
    """A git command failed."""


def git(repo: Path, *arguments: str, date: str = "") -> str:
    """Return what a git command printed.

    Commits are ours, and of `date` if one is given. Raises GitFailure, RigFailure.
    """
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _IDENT.items()}
    when = {f"GIT_{role}_DATE": date for role in ("AUTHOR", "COMMITTER")} if date else {}
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = call(["git", "-C", str(repo), *arguments], repo, TIMEOUT_S, {**who, **when, **plain})
    if done.returncode:
        raise GitFailure(f"`git {arguments[0]}` failed in {repo}: {complaint_of(done)}", evidence=done.stderr)
    return done.stdout


def call(
    command: Sequence[str], folder: Path, timeout_s: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Raises RigFailure at the deadline, SetupMissing if there is no such program."""
    environment = {**os.environ, **(variables or {})}
    try:
        return run_to_end(command, timeout_s, cwd=folder, env=environment)
    except subprocess.TimeoutExpired:
        raise RigFailure(f"`{shlex.join(command[:4])}` did not end within {timeout_s:g} s") from None
    except FileNotFoundError:
        raise SetupMissing(f"{command[0]} is not installed", hint=f"sudo apt-get install {command[0]}") from None
