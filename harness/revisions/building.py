"""What a commit's build is told by environment variables, whether asv is started by us or in a process of ours.

What the person has set stays as it is.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from device_runner.disk import ELSEWHERE
from device_runner.failures import DiskFull

UNUSED_SUBMODULES = ("3rdparty/cutlass", "3rdparty/cutlass_fpA_intB_gemm", "3rdparty/libflash_attn")
"""TVM's for CUDA, 0.3 GB: a build for Adreno never reads them."""
ROOM_BYTES = 4 << 30
"""A commit of TVM takes less: its checkout, 600 object files, the wheel, and the environment it is installed in."""


def build_variables(root: Path) -> dict[str, str]:
    """For building below `root`: ccache finds what was compiled in another folder there, git leaves out what is unused.

    A compiler's command names the folder of the checkout, which is another one for each environment; `CCACHE_BASEDIR`
    makes such paths relative before they are compared. Source: ccache's manual, "Compiling in different directories".
    """
    wanted = {
        "CCACHE_BASEDIR": str(root),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "include_file_ctime,include_file_mtime,pch_defines,time_macros",
        **_git({f"submodule.{name}.update": "none" for name in UNUSED_SUBMODULES}),
    }
    return {name: value for name, value in wanted.items() if name == "GIT_CONFIG_COUNT" or name not in os.environ}


def require_room(folder: Path) -> None:
    """Raise DiskFull if there is no room for a build."""
    free = shutil.disk_usage(folder).free
    if free < ROOM_BYTES:
        need = f"{ROOM_BYTES / 1e9:.1f} GB for a commit of TVM, and {free / 1e9:.1f} GB free in {folder}"
        raise DiskFull(f"too little room to build: up to {need}", hint=f"`adreno-bench cache --prune`, {ELSEWHERE}")


def _git(settings: dict[str, str]) -> dict[str, str]:
    """Settings as git takes them from the environment, after those that are there."""
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    pairs = {
        f"GIT_CONFIG_{part}_{first + index}": text
        for index, setting in enumerate(settings.items())
        for part, text in zip(("KEY", "VALUE"), setting, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(first + len(settings)), **pairs}
