"""Compilers side by side: each revision in a Python environment of its own, with this harness in it.

sources.py      what a revision is: a release of TVM, or a commit of a repository that an asv configuration describes
git.py          git, called with a deadline
environment.py  the environment that holds one, made once and kept, and what a commit's build is told
install.py      asv makes it; runs in a process of its own
toolchain.py    build and run cases with one revision: our own commands, in a fresh process each time
compare.py      two revisions, compared: built, screened, then measured in turns
bisect/         which of many revisions did it
"""
