"""The CLML path: parts of a network go to OpenCL ML, the library inside Qualcomm's driver; the rest stays on OpenCL."""

from __future__ import annotations

from harness.compile.paths.clml.codegen import register
from harness.compile.paths.clml.path import ClmlPath, relax_passes

__all__ = ["ClmlPath", "register", "relax_passes"]
