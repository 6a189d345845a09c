"""History: the suite over commits, measured by asv, and what its results say.

asv_process.py  one case in one of asv's processes: the record that all benchmarks of the case read
machine.py    a device's identity as an asv machine
runs.py       asv, started and ended
releases.py   TVM's releases as a git repository
kernel_times.py  what kernels took at each commit, from the profiles beside our records
results.py    asv's results and our records, as series of points
events.py     what moved in them
"""
