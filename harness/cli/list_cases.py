"""`adreno-bench list`: the cases of the suite."""

from __future__ import annotations

from device_runner.store import cache_root
from harness.base.tables import table
from harness.cli.options import AsJson, SuiteOptions, grouped
from harness.judge.report.screen import out, out_json


@grouped
def list_cases(what: SuiteOptions, as_json: AsJson = False) -> None:
    """List the cases of the suite. Opens no device and compiles nothing."""
    from harness.compile.artifacts.planner import check

    read = what.read_suite()
    cases = what.cases(read)
    check(read, cases, cache_root())
    if as_json:
        out_json([item.id for item in cases])
    else:
        rows = [(c.id, c.model, c.path, c.precision.value, c.tuning.value) for c in cases]
        headers, spare = ("case", "model", "path", "precision", "tuning"), ("model", "path", "tuning", "precision")
        out(table(rows, headers, spare=spare))
