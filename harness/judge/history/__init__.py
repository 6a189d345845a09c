"""History: the suite over commits, measured by asv, and what its results say.

asv_process.py   one case in one of asv's processes: the record that all benchmarks of the case read
runs.py          asv, started and ended, on a device as its machine
releases.py      TVM's releases as a git repository
results.py       asv's results and our records, as series of points
kernel_times.py  what kernels took at each commit, from the profiles beside our records
code_results.py  the machine code of each case at each commit
events.py        what moved in them
"""
