"""Statistics of latencies: pure functions on numbers. No I/O, no TVM, no clock.

In the order of use, one file each: `robust` (measures of a session), `session` (is its data sound, and its one number),
`pair` (what a change is), `turns` (base and head in turns), `spending` (the price of looking often), `engine` (the
verdict), `suite` (many series), `history` and `step` (steps of a series), `noise` (what a series can show), `controls`
(is this run fit?). Of ours they import only the list of verdicts. docs/explanation/verdicts.md says what the
verdicts mean, docs/data/power.md what they detect.
"""
