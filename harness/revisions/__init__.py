"""Compilers side by side: each revision in a Python environment of its own, with this harness in it.

sources.py      what a revision is: a release of TVM, or a commit of a repository that an asv configuration describes
release_repository.py  the repository whose commits are TVM's releases
asv_config.py   what asv reads of its configuration
git.py          git, called with a deadline
building.py     what a commit's build is told
environment.py  the environment that holds one, made once and kept
install.py      asv makes it; runs in a process of its own
snapshot.py     a copy of this harness, which runs in all of them
command_line.py  our commands with one revision, each time in a fresh process
toolchain.py    build and run cases with one revision
compare.py      two revisions, compared: built, screened, then measured in turns
bisect/         which of many revisions did it
"""
