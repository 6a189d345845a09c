"""The CLML path: parts of a network go to OpenCL ML, the library inside Qualcomm's driver; the rest stays on OpenCL."""

from __future__ import annotations

from harness.paths.clml.path import ClmlPath, offload_passes, partitioned
from harness.paths.clml.registration import register

__all__ = ["ClmlPath", "offload_passes", "partitioned", "register"]
