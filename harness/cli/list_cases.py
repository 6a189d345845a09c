"""`adreno-bench list`: the cases of the suite."""

from __future__ import annotations

from harness.cli.options import DEFAULT_SUITE, AsJson, CaseGlob, SuiteFile


def list_cases(suite: SuiteFile = DEFAULT_SUITE, case: CaseGlob = None, as_json: AsJson = False) -> None:
    """List the cases of the suite: Model x Path x Precision x Tuning. Touches no device and compiles nothing."""
    import json

    from harness.cases.suite import choose, load_suite
    from harness.cli.screen import out
    from harness.cli.table import plain_table

    cases = choose(load_suite(suite), case)
    if as_json:
        out(json.dumps([item.id for item in cases], indent=1))
    else:
        rows = [(c.id, c.model, c.path, c.precision.value, c.tuning.value) for c in cases]
        out(plain_table(rows, ("case", "model", "path", "precision", "tuning")))
