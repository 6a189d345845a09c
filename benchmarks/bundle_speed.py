"""What taking in a bundle's results takes: `python -m benchmarks.bundle_speed RESULTS BUNDLE [CASES]`.

The turns of a results folder, or of an archive of one, are written again and again, as if a bundle had so many cases
(500), and taken in by `adreno-bench ingest` itself. Prints its processor time and the time by the clock.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from harness.tools.bundle.archive import find_files, unpack
from harness.tools.bundle.manifest import LINES, MANIFEST, id_of
from harness.tools.bundle.results import DIGEST_DIGITS, IGNORED, SIZE_LIMITS, link_of

TURN = "seen"
"""The kind of a turn's line."""


def multiply(source: Path, into: Path, count: int) -> None:
    """Results of a bundle with so many turns."""
    files = find_files(source, SIZE_LIMITS, into.parent, IGNORED)
    manifest = json.loads(files[MANIFEST].read_bytes())
    lines = [json.loads(line[DIGEST_DIGITS + 1 :]) for line in files[LINES].read_bytes().splitlines()]
    turns = list(islice(cycle(line for line in lines if line["kind"] == TURN), count))
    manifest["turns"] = [turn["turn"] for turn in turns]
    text = json.dumps(manifest, indent=1, sort_keys=True).encode()
    (into / MANIFEST).write_bytes(text)
    link = id_of(text)
    device, others = ([line for line in lines if (line["kind"] == "device") is is_it] for is_it in (True, False))
    with (into / LINES).open("wb") as file:
        for one in (*device[:1], *turns, *(line for line in others if line["kind"] != TURN)):
            content = json.dumps(one, sort_keys=True)
            link = link_of(content.encode(), link)
            file.write(f"{link} {content}\n".encode())


def main() -> None:
    """Multiply, take in, print."""
    source, packed, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 500
    with tempfile.TemporaryDirectory() as scratch:
        many, bundle = Path(scratch) / "results", Path(scratch) / "bundle"
        many.mkdir()
        multiply(source, many, count)
        unpack(packed, bundle)
        shutil.copy(many / MANIFEST, bundle / MANIFEST)
        command = ["ingest", str(many), "--bundle", str(bundle), "--records", f"{scratch}/records.jsonl"]
        began, before = time.monotonic(), os.times()
        subprocess.run(
            [sys.executable, "-c", "from harness.cli import main; main()", *command],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        took, after = time.monotonic() - began, os.times()
        processor = after.children_user - before.children_user + after.children_system - before.children_system
        records = sum(1 for _ in (Path(scratch) / "records.jsonl").open("rb"))
    sys.stdout.write(f"{records} records taken in: {processor:.2f} s of processor time, {took:.2f} s by the clock\n")


if __name__ == "__main__":
    main()
