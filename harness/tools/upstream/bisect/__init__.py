"""Which revision of the compiler did it?

bisection.py    the whole of it: from the two ends to the first bad revision, and what changed in its kernels; what is
                known so far is kept in a file, so that a killed bisection goes on
line.py         the revisions between the two ends
judging.py      what a revision is: good, bad, or not to be judged
by_report.py    the same by the program of a defect's report

`harness.tools.shared.revision_search` says which revision to inspect next.
"""
