"""The paths: one file each, registered in `PATHS`."""

from __future__ import annotations

from harness.paths.base import CompilationPath
from harness.paths.clml.path import ClmlPath
from harness.paths.cpu import CpuPath
from harness.paths.opencl import OpenCLPath
from harness.paths.texture import TexturePath

PATHS: dict[str, CompilationPath] = {path.name: path for path in (OpenCLPath(), TexturePath(), ClmlPath(), CpuPath())}
"""By name; `cpu` is the oracle and never a contestant."""
