"""The paths: one file each, registered in `PATHS`."""

from __future__ import annotations

from harness.compile.paths.base import CompilationPath
from harness.compile.paths.clml.path import ClmlPath
from harness.compile.paths.cpu import CpuPath
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.paths.texture import TexturePath

PATHS: dict[str, CompilationPath] = {path.name: path for path in (OpenCLPath(), TexturePath(), ClmlPath(), CpuPath())}
"""By name; `cpu` is the oracle and never a contestant."""


def family_of(name: str) -> str:
    """Return the family of a path; the name itself of one that is not there, as a record may have it."""
    return PATHS[name].family if name in PATHS else name
