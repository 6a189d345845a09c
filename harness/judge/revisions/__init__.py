"""Repositories of the compiler, whose commits a history measures, and tools side by side.

repository.py  the repository of TVM's releases, and how asv installs the commits of a repository
git.py         git, called with a deadline
"""
