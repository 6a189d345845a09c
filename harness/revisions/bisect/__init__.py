"""Which revision of the compiler did it?

search.py    which revision to look at next; pure
judging.py   what a revision is: good, bad, or not to be told
question.py  what was asked, and what is known so far: kept in a file, so that a killed bisection goes on
search_loop.py      from the two ends to the first bad revision
kernels.py   what the compiler makes of the case on both sides of it
"""
