"""What is to be built and run: each operator case on each path, as shipped and with the known defects worked around."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from device_runner.device import Identity
from harness.build.keys import compile_job
from harness.build.planner import device_request
from harness.cases.case import Precision
from harness.cases.plan import Job
from harness.cases.suite import RELATIVE_TOLERANCE
from harness.ops.catalogue import MODEL, Catalogue, OperatorCase
from harness.quirks import quirks_for

MODES = {False: "worked round", True: "as shipped"}
"""What the table calls it, by `as_shipped`."""


@dataclass(frozen=True)
class Cell:
    """One operator case on one path, in one mode."""

    case: OperatorCase
    path: str
    precision: Precision
    as_shipped: bool
    compile: Job

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.case.name} on {self.path}, {MODES[self.as_shipped]}"

    @property
    def dtype(self) -> str:
        """That it is computed in."""
        return self.case.dtype if self.precision is Precision.FLOAT32 else self.precision.value

    @property
    def relative_tolerance(self) -> float:
        """Of the expected output's peak."""
        return RELATIVE_TOLERANCE["float16" if self.case.dtype == "float16" else self.precision.value]


def cells(
    catalogue: Catalogue,
    cases: Sequence[OperatorCase],
    paths: Sequence[str],
    identity: Identity,
    *,
    precision: Precision,
    modes: Sequence[bool],
) -> Iterator[Cell]:
    """All that is to be known of the cases; the cells of one case stand together."""
    base = device_request(identity)
    for case in cases:
        for path in paths:
            for as_shipped in modes:
                quirks, file = list(_quirks(path, precision, as_shipped)), str(catalogue.file(case, MODEL))
                request = replace(base, model_file=file, path=path, precision=precision.value, quirks=quirks)
                title = f"{case.name} on {path}, {MODES[as_shipped]}"
                yield Cell(case, path, precision, as_shipped, compile_job(request, case.model_sha256, title))


@functools.cache
def _quirks(path: str, precision: Precision, as_shipped: bool) -> tuple[str, ...]:
    return tuple(quirk.id for quirk in quirks_for(path, precision, as_shipped=as_shipped))
