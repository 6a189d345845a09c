"""A repository of TVM's releases, and how asv installs the commits of a repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from device_runner.failures import SetupMissing
from harness.base.failures import UsageError
from harness.compile.compiler.releases import RELEASES
from harness.judge.revisions.git import git

CONFIG = "asv.conf.json"
PINS = "requirements.txt"
"""The file that a commit holds."""
UNUSED_SUBMODULES = ("3rdparty/cutlass", "3rdparty/cutlass_fpA_intB_gemm", "3rdparty/libflash_attn")
"""TVM's for CUDA, 0.3 GB: a build for Adreno never reads them."""


def write_configuration(folder: Path, **settings: object) -> None:
    """Write asv's configuration for TVM's releases. Relative paths start at its folder."""
    shared = {"version": 1, "project": "apache-tvm", "dvcs": "git", "branches": ["main"], "build_command": []}
    config = {**shared, "environment_type": "virtualenv", "install_timeout": 1800, **settings}
    (folder / CONFIG).write_text(json.dumps(config, indent=4) + "\n", encoding="utf-8")


def init(repo: Path) -> None:
    """Make an empty repository unless there is one."""
    repo.mkdir(parents=True, exist_ok=True)
    if not (repo / ".git").exists():
        git(repo, "init", "--quiet", "--initial-branch=main")


def commit(repo: Path, release: str) -> None:
    """Add a known release. The commit is the same on every machine."""
    (repo / PINS).write_text("\n".join(RELEASES[release].pins) + "\n", encoding="utf-8")
    git(repo, "add", PINS)
    git(repo, "commit", "--quiet", "--message", f"apache-tvm {release}", date=RELEASES[release].released_at)
    git(repo, "tag", release)


def configuration(config: Path) -> Any:
    """Return what asv reads of its configuration.

    Raises SetupMissing without asv, UsageError for a file that is not one.
    """
    try:
        from asv.config import Config
        from asv.util import UserError
    except ImportError:
        raise SetupMissing("asv is not installed", hint="pip install 'adreno-bench[history]'") from None
    if not config.exists():
        releases = "`adreno-bench history releases` makes one of TVM's releases"
        raise UsageError(f"there is no {config}", hint=f"{releases}, or pass --config FILE")
    try:
        return Config.load(str(config))
    except (UserError, OSError, ValueError, TypeError, AttributeError) as error:
        why = str(error).removesuffix(".")
        raise UsageError(f"{config} cannot be used: {why}", hint="pass --config FILE") from error


def build_variables(root: Path) -> dict[str, str]:
    """Variables for building below `root`: ccache finds objects of other folders there, git clones no unused parts.

    What the person has set stays as it is.

    A compiler's command names the folder of the checkout, which is another one for each environment; `CCACHE_BASEDIR`
    makes such paths relative before they are compared. Source: ccache's manual, "Compiling in different directories".
    """
    variables = {
        "CCACHE_BASEDIR": str(root),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "include_file_ctime,include_file_mtime,pch_defines,time_macros",
        **_git({f"submodule.{name}.update": "none" for name in UNUSED_SUBMODULES}),
    }
    return {name: value for name, value in variables.items() if name == "GIT_CONFIG_COUNT" or name not in os.environ}


def _git(settings: dict[str, str]) -> dict[str, str]:
    """Return settings as git takes them from the environment, after those that are there."""
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    pairs = {
        f"GIT_CONFIG_{part}_{first + index}": text
        for index, setting in enumerate(settings.items())
        for part, text in zip(("KEY", "VALUE"), setting, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(first + len(settings)), **pairs}
