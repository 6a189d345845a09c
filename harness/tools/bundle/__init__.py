"""Bundles: a suite packed for a machine that cannot be reached from here, and what comes back from there.

A bundle is a folder, or an archive of one:

    manifest.json               what is in it; the SHA-256 of this file is the bundle's id
    run.sh runner               run every turn: a shell script, and a program of C that runs one turn
    turns cases/                the order of the turns, and what the program reads of each
    look.sh link.sh files.sha256    what the script uses
    lib/<build>/*.so            TVM's runtime libraries, never its compiler; the OpenCL loader; the probe
    artifacts/<build>/*.so      a library for each case, and the reference kernel
    answers/<key>/              inputs and the oracle's answers, as numpy and as the program read them

A build is `head`, or `base` and `head` where two are compared. The manifest has the SHA-256 of every other file, all
that a record says of a case before it is run, and the order of the turns: which case of which build is run when. With
two builds the turns are those that `harness.judge.in_turns` would ask for.

Results are a folder, too:

    manifest.json               the bundle's, unchanged
    turns.jsonl                 one line for each turn, written as soon as it is over

A line begins with the SHA-256 of the line's own text and the one before it; the first one's predecessor is the bundle's
id. So a line that was changed, left out, doubled or taken from another run does not fit, and a run that was cut short
has whole lines up to where it was cut, from where it can be taken up again.

* `pack` makes bundles, on a host with the compiler; `turn_files` writes what runs there.
* `results` reads what came back: each turn goes through the loop of every other run, on a `ReplayDevice`.
* `verdict` judges two builds with the gate's own engine.
"""

from harness.base.tool import CacheKind, Command, Tool

TOOL = Tool(
    "bundle",
    commands=(
        Command(
            "pack",
            "Pack the suite for a machine that you cannot reach.",
            "Measure",
            "harness.tools.bundle.pack_command:pack",
        ),
        Command(
            "ingest",
            "Check the results of a bundle and add them to the records.",
            "Measure",
            "harness.tools.bundle.ingest_command:ingest",
        ),
    ),
    cache_kinds=(CacheKind("bundles", "the manifest of a bundle that was packed here, and answers to judge by"),),
)
