"""asv installs one commit into an environment of its own.

In a process of its own, because asv prints and changes folder.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from device_runner.files import write_whole
from harness.compiler.installed import REVISION_MARK
from harness.revisions.environment import MADE


def main(config: str, commit: str, folder: str, mark: str) -> None:
    """Make the environment in `folder`, which says last where its interpreter is.

    `mark` is left in it for a TVM that does not know its own commit.
    """
    from asv.config import Config
    from asv.console import log
    from asv.environment import get_environments
    from asv.plugin_manager import plugin_manager
    from asv.repo import get_repo
    from asv.util import ProcessError

    os.chdir(Path(config).parent)
    log.enable(False)
    conf = Config.load(Path(config).name)
    conf.env_dir = folder
    for plugin in conf.plugins:
        plugin_manager.import_plugin(plugin)
    (environment,) = get_environments(conf, None)
    try:
        environment.create()
        environment.install_project(conf, get_repo(conf), commit)
    except ProcessError as error:
        sys.exit(_complaint(f"{error.stdout}\n{error.stderr}") or str(error))
    python = Path(environment.find_executable("python"))
    if mark:
        (python.parents[1] / REVISION_MARK).write_text(mark, encoding="utf-8")
    where = python.relative_to(folder)  # so that the cache may be moved
    write_whole(Path(folder) / MADE, json.dumps({"python": str(where), "commit": commit}))


def _complaint(printed: str) -> str:
    """The line in which a build or pip says what was wrong: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [""])[-1]
