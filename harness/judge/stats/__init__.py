"""Statistics of latencies: pure functions on numbers. No I/O, no TVM, no clock. Of ours they
import only the list of verdicts.

In the order of use, one file each: `robust` and `rows` (measures of one session, and of many at once), `samples` (is a
session's data sound?), `session` (a session as one number), `pair` (what a change is), `turns` (base and head in
turns), `spending` (the price of looking often), `engine` (the verdict), `fdr` (a whole suite at once), `history` and
`step` (steps of a series), `noise` (what a series can show), `controls` (is this run fit?), `geomean` (one number for
many).
docs/verdicts.md tells what the verdicts mean, docs/power.md what they have been measured to detect.
"""
