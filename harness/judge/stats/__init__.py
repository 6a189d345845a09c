"""Statistics of latencies: pure functions on numbers. No I/O, no TVM, no clock. Of ours they
import only the list of verdicts.

In the order of use, one file each: `robust` and `rows` (measures of one session, and of many at once), `samples` (is a
session's data sound?), `session` (a session as one number), `pair` (base against head), `fdr` (a whole suite at once),
`sequential` (confirm a suspect in fresh sessions), `history` (steps of a series), `noise` (what a series can show),
`controls` (is this run fit?), `geomean` (one number for many).
docs/verdicts.md tells what the verdicts mean, docs/power.md what they have been measured to detect.
"""

from harness.judge.stats.controls import Fitness, Probe, Probed, gauge
from harness.judge.stats.fdr import hold
from harness.judge.stats.geomean import Flip, Overall, flips, overall
from harness.judge.stats.history import History, Step, segment, threshold
from harness.judge.stats.noise import NoiseEstimate, estimate_noise
from harness.judge.stats.pair import Change, Rules, compare
from harness.judge.stats.samples import Limits, Quality, check
from harness.judge.stats.sequential import Arm, ConfirmationPlan, Decision, Stage, decide
from harness.judge.stats.session import Noise

__all__ = [
    "NoiseEstimate",
    "Change",
    "Decision",
    "Fitness",
    "Flip",
    "History",
    "Limits",
    "Noise",
    "Overall",
    "ConfirmationPlan",
    "Probe",
    "Probed",
    "Quality",
    "Rules",
    "Arm",
    "Stage",
    "Step",
    "estimate_noise",
    "check",
    "compare",
    "decide",
    "flips",
    "gauge",
    "hold",
    "overall",
    "segment",
    "threshold",
]
