"""What watching kernels does to their times: the same case, watched and not, in sessions that take turns.

    python -m benchmarks.watch_kernels_cost SUITE DEVICE CASE [TURNS]

Goal: at most 5 % more than without. `device_ms` is the sum of the kernels' times either way.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from benchmarks.common import LONG_S
from harness.compile.artifacts.artifact import INPUTS, Answers, Artifact, load_arrays
from harness.measure.progress import SilentProgress
from harness.measure.workbench import Request, open_workbench
from harness.tools.shared.kernels.profile import ms_of

INFERENCES = 20


def main(suite: str, device: str, case: str, turns: str = "4") -> None:
    """Print the medians and their ratio."""
    request = Request.read(Path(suite), [case])
    with open_workbench(request, request.one_device(device, SilentProgress()), SilentProgress()) as bench:
        (plan,) = bench.plans
        built = bench.builder.build(plan.jobs)
        artifact, answers = built[plan.compile.key], built[plan.oracle.key]
        if not isinstance(artifact, Artifact) or not isinstance(answers, Answers):
            sys.exit(f"{case} could not be built: {artifact} {answers}")
        inputs, plain, watched = load_arrays(answers.folder / INPUTS), [], []
        for _ in range(int(turns)):
            for watch in (False, True):
                with bench.device.session({}, timeout_s=LONG_S) as session:
                    program = session.load(artifact.loadable, timeout_s=LONG_S)
                    program.run(inputs, timeout_s=LONG_S)
                    program.device_ms(INFERENCES, timeout_s=LONG_S)
                    if watch:
                        inferences = program.launches(INFERENCES, timeout_s=LONG_S)
                        watched += [sum(map(ms_of, one)) for one in inferences]
                    else:
                        plain += program.device_ms(INFERENCES, timeout_s=LONG_S)
    print(f"{case} on {device}, {len(plain)} inferences each: kernels {median(plain):.4f} ms, ", end="")
    print(f"watched {median(watched):.4f} ms: {median(watched) / median(plain):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
