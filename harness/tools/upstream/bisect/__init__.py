"""Which revision of the compiler did it?

bisection.py    the whole of it: from the two ends to the first bad revision, and what changed in its kernels
search.py       which revision to inspect next; pure
judging.py      what a revision is: good, bad, or not to be judged
by_report.py    the same by the program of a defect's report
question.py     what was asked, and what is known so far: kept in a file, so that a killed bisection goes on
"""
