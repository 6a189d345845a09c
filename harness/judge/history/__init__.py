"""History: the suite over commits, measured by asv, and what its results say.

asv_process.py   one case in one of asv's processes: the record that all benchmarks of the case read
runs.py          asv, started and ended, on a device as its machine
releases.py      TVM's releases as a git repository
results.py       asv's results and our records, as series of points
events.py        what moved in them
section.py       what tools add to them
"""
