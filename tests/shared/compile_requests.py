"""Requests to the compiler, with the workarounds that the planner would choose."""

from pathlib import Path

from harness.base.case import Precision
from harness.base.request import CompileRequest
from harness.compile.quirks import quirks_for


def request_for(
    model: Path | str,
    path: str,
    precision: str = "float32",
    *,
    as_shipped: bool = False,
    host_triple: str | None = None,
    limits: tuple[int, int, int] = (8192, 8192, 2048),
) -> CompileRequest:
    """A model on a path; `limits` are those of the device's images."""
    quirks = [quirk.id for quirk in quirks_for(path, Precision(precision), as_shipped=as_shipped)]
    return CompileRequest(str(model), path, precision, quirks, host_triple, *limits)
