"""Statistics of latencies: pure functions on numbers. No I/O, no TVM, no clock. Of ours they
import only the list of verdicts.

In the order of use, one file each: `robust` and `rows` (measures of one session, and of many at once), `samples` (is a
session's data sound?), `session` (a session as one number), `pair` (what a change is), `turns` (base and head in
turns), `spending` (the price of looking often), `engine` (the verdict), `fdr` (a whole suite at once), `history` and
`step` (steps of a series), `noise` (what a series can show), `controls` (is this run fit?), `geomean` (one number for
many).
docs/verdicts.md tells what the verdicts mean, docs/power.md what they have been measured to detect.
"""

from harness.judge.stats.controls import Fitness, Probe, Probed, gauge
from harness.judge.stats.engine import Plan, compare, judge_turns, turn_of
from harness.judge.stats.fdr import hold
from harness.judge.stats.geomean import Flip, Overall, flips, overall
from harness.judge.stats.history import History, Step, segment
from harness.judge.stats.noise import NoiseEstimate, estimate_noise
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.samples import Limits, Quality, check
from harness.judge.stats.session import Noise
from harness.judge.stats.turns import Arm, Turn, order

__all__ = [
    "NoiseEstimate",
    "Change",
    "Fitness",
    "Flip",
    "History",
    "Limits",
    "Noise",
    "Overall",
    "Probe",
    "Probed",
    "Quality",
    "Rules",
    "Arm",
    "Plan",
    "Turn",
    "judge_turns",
    "order",
    "turn_of",
    "Step",
    "estimate_noise",
    "check",
    "compare",
    "flips",
    "gauge",
    "hold",
    "overall",
    "segment",
]
