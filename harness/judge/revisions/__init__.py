"""Revisions of the compiler. The tools build and run them side by side, each in an environment of its own.

sources.py  what a revision is: a release of TVM, or a commit of a repository that an asv configuration describes
git.py      git, called with a deadline
"""
