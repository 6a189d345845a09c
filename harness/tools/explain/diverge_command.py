"""`adreno-bench diverge`: the first wrong operator of a case."""

from __future__ import annotations

from pathlib import Path

from harness.base.terminal import tell
from harness.cli import options
from harness.cli.hints import last_words, runnable
from harness.judge.report.screen import out, out_json
from harness.tools.explain.recorded_case import RecordedCase, newest_records


@last_words("nothing was found yet; what was built is kept; {command} starts again")
def diverge(
    case: RecordedCase = None,
    records: options.RecordsPlace = str(options.DEFAULT_RECORDS),
    suite: options.SuiteFile = options.DEFAULT_SUITE,
    model: options.Models = None,
    shape: options.Shapes = None,
    input: options.Inputs = None,
    fix: options.Fixes = None,
    trust: options.Trust = False,
    device: options.DeviceOfRecords = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the first wrong or failing operator of a case.

    Runs the network of the case in pieces on the device, and keeps the smallest piece that shows the defect. `report`
    shows what it finds.
    """
    from harness.base.model import models_given
    from harness.tools.explain.divergence import find_divergence, newest_finding
    from harness.tools.explain.first_wrong import append_first_wrong

    models = models_given(model or (), shape or (), input or (), fix or (), trust=trust)
    report = find_divergence(newest_finding(newest_records(records, case)), suite, models, device)
    try:
        if (file := Path(records)).exists():
            append_first_wrong(file, report.first_wrong())
    except OSError as error:
        tell(f"`adreno-bench report` cannot show this: {error}")
    if as_json:
        out_json(report.plain())
    else:
        out(runnable(report.text(), records))
