"""`adreno-bench reduce`: the smallest network that still fails in the same way, in a folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.deadline import Deadline
from harness.base.failures import UsageError
from harness.base.tables import counted
from harness.cli.hints import last_words
from harness.cli.options import DEFAULT_DEVICE, AsJson, CaseOptions, DeviceName, grouped
from harness.judge.report.screen import Screen, out_json
from harness.judge.report.screen import out as print_out
from harness.tools.shared.networks import without_programs
from harness.tools.shared.outputs import require_output_folder

if TYPE_CHECKING:
    from harness.measure.workbench import Request
    from harness.tools.explain.reduction import Reduction


STOPPED = (
    "the time was up: a smaller network may fail, too. The same command with a larger --minutes goes on from here; "
    "every attempt is kept"
)


@grouped
@last_words("no folder was written; what was built is kept; {command} continues")
def reduce(
    what: CaseOptions,
    device: DeviceName = DEFAULT_DEVICE,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to write.", show_default="reduced-CASE in the working directory"),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Time limit, in minutes. Then it writes the smallest network so far.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Shrink a wrong or broken network to the smallest that fails in the same way.

    Writes a folder that shows it. Every attempt is kept, so an interrupted reduction continues quickly.
    """
    from harness.tools.explain.reduced_folder import write_folder

    require_output_folder(out or Path.cwd())
    began = time.monotonic()
    request = without_programs(what.request())
    reduction = _reduced(request, device, minutes)
    folder = out or Path(f"reduced-{reduction.whole.case}")
    write_folder(reduction, folder, request.cache)
    seconds = time.monotonic() - began
    if as_json:
        out_json(_plain(reduction, folder, seconds))
    else:
        print_out(_text(reduction, folder, seconds))


def _reduced(request: Request, device: str, minutes: float) -> Reduction:
    from harness.tools.explain.reduction import reduce_case
    from harness.tools.explain.trial import open_trials

    if len(request.cases) > 1:
        what = f"reduce takes one case, and {len(request.cases)} match"
        raise UsageError(what, hint=f"name one: --case {request.cases[0].id}")
    deadline = Deadline(60 * minutes)
    with Screen() as screen, open_trials(request, device, screen) as trials:
        return reduce_case(trials, screen.say, deadline)


def _text(reduction: Reduction, folder: Path, seconds: float) -> str:
    record = reduction.record
    return "\n".join(
        (
            f"{reduction.whole.case}: {reduction.whole.outcome.value}: {reduction.whole.message}",
            f"{counted(reduction.network.operators, 'operator')} of {reduction.operators} left, with "
            f"{reduction.network.elements} numbers in inputs and weights; "
            f"{counted(reduction.tried, 'network was', 'networks were')} tried in {seconds:.0f} s",
            f"it is {record.outcome.value}: {record.message}",
            f"in {folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}",
            *([STOPPED] if reduction.stopped else []),
        )
    )


def _plain(reduction: Reduction, folder: Path, seconds: float) -> dict[str, object]:
    return {
        "case": reduction.whole.case,
        "outcome": reduction.record.outcome.value,
        "message": reduction.record.message,
        "operators_before": reduction.operators,
        "operators": [node.op_type for node in reduction.network.proto().graph.node],
        "elements": reduction.network.elements,
        "as_shipped": reduction.as_shipped,
        "tried": reduction.tried,
        "stopped": reduction.stopped,
        "seconds": seconds,
        "folder": str(folder),
    }
