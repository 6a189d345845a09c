"""asv installs one commit into an environment of its own.

In a process of its own, because asv prints and changes folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from device_runner.files import write_whole
from harness.base.process import run_to_end
from harness.base.terminal import tell
from harness.compile.compiler.releases import REVISION_MARK
from harness.judge.revisions.repository import build_variables
from harness.tools.shared.environment import BUILDING, DONE_FILE

_IMPORT = "import tvm, tvm.relax, tvm.s_tir"
_IMPORTED = "imported"
IMPORT_TIMEOUT_S = 300.0


def main(config: str, repo: str, commit: str, folder: str, mark: str) -> None:
    """Make the environment in `folder`, which says last where its interpreter is.

    `repo` is taken instead of the configuration's. `mark` is left in it for a TVM that does not know its own commit; a
    release has none.
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
    conf.repo, conf.env_dir = repo, folder
    for plugin in conf.plugins:
        plugin_manager.import_plugin(plugin)
    os.environ.update(build_variables(Path(folder)))
    (environment,) = get_environments(conf, None)
    if mark:  # asv has no setting for where it checks out and builds
        environment._build_root = str(Path(folder).parent / BUILDING)
    try:
        environment.create()
        environment.install_project(conf, get_repo(conf), commit)
    except ProcessError as error:
        _give_up(complaint(f"{error.stdout}\n{error.stderr}") or str(error))
    python = Path(environment.find_executable("python"))
    require_import(python)
    if mark:
        (python.parents[1] / REVISION_MARK).write_text(mark, encoding="utf-8")
    else:
        shutil.rmtree(python.parents[1] / "project", ignore_errors=True)  # what pip has installed is not needed twice
    where = python.relative_to(folder)  # so that the cache may be moved
    write_whole(Path(folder) / DONE_FILE, json.dumps({"python": str(where), "commit": commit}))


def require_import(python: Path) -> None:
    """End this process with what Python said if TVM is there, and a Python that imports it does not end well.

    A TVM whose destructors crash is of no use either: every command that runs it would end as a crash does.
    """
    has_tvm = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tvm') is None)"
    if subprocess.run([python, "-c", has_tvm], cwd="/", check=False).returncode:
        return  # a configuration of something else
    try:
        code = f"{_IMPORT}; print('{_IMPORTED}', flush=True)"
        done = run_to_end([str(python), "-X", "faulthandler", "-c", code], IMPORT_TIMEOUT_S, cwd="/")
    except subprocess.TimeoutExpired:
        _give_up(f"error: `{_IMPORT}` did not end within {IMPORT_TIMEOUT_S:g} s")
    if done.returncode:
        tell(f"\n{done.stderr}")
        ending = f"died of signal {-done.returncode}" if done.returncode < 0 else f"ended with code {done.returncode}"
        where = "and Python cannot end with it" if _IMPORTED in done.stdout else "and cannot be imported"
        _give_up(f"it was installed, {where}: {complaint(done.stderr) or f'Python {ending} and said nothing'}")


def _give_up(why: str) -> NoReturn:
    """End this process; its parent reads the last line. asv leaves the line that it is at without an end."""
    sys.exit(f"\n{why}")


_SAYS_NO_MORE = (
    *("failed to build", "failed building", "subprocess-exited-with-error", "originates from a subprocess"),
    *("error generated.", "errors generated."),
)
"""What pip and Clang say of any build that fails; why it failed is further up."""


def complaint(printed: str) -> str:
    """Return the line in which a build or pip says what was wrong: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    telling = [line for line in errors if not any(phrase in line.lower() for phrase in _SAYS_NO_MORE)]
    return (telling or errors or lines or [""])[-1]
