"""`adreno-bench list`: the cases of the suite."""

from __future__ import annotations

from device_runner.store import cache_root
from harness.cli.options import DEFAULT_SUITE, AsJson, CaseGlob, SuiteFile
from harness.cli.screen import out, out_json
from harness.tables import table


def list_cases(suite: SuiteFile = DEFAULT_SUITE, case: CaseGlob = None, as_json: AsJson = False) -> None:
    """List the cases of the suite. Opens no device and compiles nothing."""
    from harness.build.planner import check
    from harness.cases.suite import choose, load_suite

    read = load_suite(suite)
    cases = choose(read, case)
    check(read, cases, cache_root())
    if as_json:
        out_json([item.id for item in cases])
    else:
        rows = [(c.id, c.model, c.path, c.precision.value, c.tuning.value) for c in cases]
        out(
            table(
                rows, ("case", "model", "path", "precision", "tuning"), spare=("model", "path", "tuning", "precision")
            )
        )
