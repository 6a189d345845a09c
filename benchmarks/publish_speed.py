"""How long `adreno-bench history publish` takes. Run: python -m benchmarks.publish_speed [COMMITS SERIES]... [--asv].

For each size it prints the processor time of our own part (reading results and records like those of a true run, 3 kB
each, and writing the pages) and the largest resident set; with --asv also the seconds of asv's own publishing.
Without sizes: 1000 commits of 1000 series, and half of each. A million points are 4 GB in the temporary folder.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.base.case import Case
from harness.base.request import AS_SHIPPED, QUIRK_STATES
from harness.judge.history.results import LATENCY, OUTCOME
from harness.judge.history.runs import asv, load_project
from harness.measure.records.record import Record, RecordFile

DAY_S = 86_400
SIZES = ((500, 500), (500, 1000), (1000, 500), (1000, 1000))
EXAMPLE = Path(__file__).parent.parent / "docs/example/results"
MACHINE = "virtual-example-00000000"
COLUMNS = ["result", "params", "version", "started_at", "duration"]
COLUMNS += [f"stats_{name}" for name in ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")] + ["samples"]


def main() -> None:
    """Make a results folder of each size, publish it, print what that takes."""
    words = [word for word in sys.argv[1:] if word != "--asv"]
    sizes = [(int(one), int(other)) for one, other in zip(words[::2], words[1::2], strict=True)] or SIZES
    for commits, series in sizes:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{commits} commits x {series} series: ", end="", flush=True)
            _measure(Path(folder), commits, series, with_asv="--asv" in sys.argv)


def _measure(root: Path, commits: int, series: int, *, with_asv: bool) -> None:
    repository = _repository(root / "repo", commits)
    _results(root / "results", repository, series)
    config = {"version": 1, "project": "p", "repo": str(root / "repo"), "dvcs": "git", "branches": ["main"]}
    (root / "asv.conf.json").write_text(json.dumps({**config, "environment_type": "virtualenv"}), encoding="utf-8")
    (root / "html").mkdir()
    (root / "order.json").write_text(json.dumps({commit: place for place, commit in enumerate(repository)}))
    own = [sys.executable, "-c", OWN, str(root / "results"), str(root / "order.json"), str(root / "html")]
    process = subprocess.Popen(own)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0
    print(
        f"{used.ru_utime + used.ru_stime:.1f} s of processor time, {used.ru_maxrss / 1000:.0f} MB", end="", flush=True
    )
    if with_asv:
        began = time.perf_counter()
        asv(load_project(root / "asv.conf.json"), ["publish", "--no-pull"], output=lambda _: None)
        print(f"; asv {time.perf_counter() - began:.1f} s", end="")
    print()


OWN = """
import json, sys
from pathlib import Path
from harness.judge.history.results import load
from harness.judge.report.site import write_site
results, order, html = map(Path, sys.argv[1:])
history = load(results, json.loads(order.read_text()))
assert not history.skipped, history.skipped
write_site(history, html, "graphs.html")
"""


def _repository(repo: Path, commits: int) -> list[str]:
    """Empty commits, one a day."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repo], check=True)
    lines = []
    for index in range(commits):
        who = f"n <n@localhost> {1_700_000_000 + index * DAY_S} +0000"
        lines.append(f"commit refs/heads/main\ncommitter {who}\ndata 1\nx\n")
    subprocess.run(["git", "-C", repo, "fast-import", "--quiet"], input="".join(lines).encode(), check=True)
    listed = subprocess.run(["git", "-C", repo, "rev-list", "--reverse", "main"], capture_output=True, check=True)
    return listed.stdout.decode().split()


def _results(results: Path, commits: list[str], series: int) -> None:
    """Latencies that wander, with ten samples each, and a step somewhere in every tenth series."""
    rng = random.Random(1)
    cases = [Case(f"model{n}", "opencl").id for n in range(series // 2)]
    params = [list(map(repr, cases)), list(map(repr, QUIRK_STATES))]
    example = RecordFile(next(EXAMPLE.glob("*/*.jsonl"))).load().records[0]
    (results / MACHINE).mkdir(parents=True)
    (results / MACHINE / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}), encoding="utf-8")
    meta = {
        name: {
            "name": name,
            "type": kind,
            "unit": unit,
            "param_names": ["case", "quirks"],
            "params": params,
            "version": "1",
            "code": "",
        }
        for name, kind, unit in ((LATENCY, "time", "seconds"), (OUTCOME, "track", "outcome"))
    }
    (results / "benchmarks.json").write_text(json.dumps({**meta, "version": 2}), encoding="utf-8")
    count = series // 2 * len(QUIRK_STATES)
    for index, commit in enumerate(commits):
        centre = [0.01 * (1.3 if k % 10 == 0 and index > k else 1.0) for k in range(count)]
        samples = [[c * rng.gauss(1, 0.01) for _ in range(10)] for c in centre]
        middle = [sorted(each)[5] for each in samples]
        low, high = ([m * factor for m in middle] for factor in (0.99, 1.01))
        ones, tens = [1] * count, [10] * count
        data = {
            "commit_hash": commit,
            "env_name": "env",
            "date": (1_700_000_000 + index * DAY_S) * 1000,
            "params": {"machine": MACHINE},
            "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
            "requirements": {},
            "env_vars": {},
            "result_columns": COLUMNS,
            "results": {
                LATENCY: [middle, params, "1", 1, 1.0, low, high, low, high, ones, tens, samples],
                OUTCOME: [[0] * count, params, "1", 1, 1.0],
            },
            "durations": {},
            "version": 2,
        }
        file = results / MACHINE / f"{commit[:8]}-env.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        keys = itertools.product((text.strip("'") for text in params[0]), QUIRK_STATES)
        lines = [_record(example, *key, wall).line() for key, wall in zip(keys, samples, strict=True)]
        file.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _record(example: Record, case: str, quirks: str, samples_s: list[float]) -> Record:
    facts = {"case": case, "model": Case.parse(case).model, "as_shipped": quirks == AS_SHIPPED}
    return example.model_copy(update={**facts, "wall_ms": [sample * 1e3 for sample in samples_s]})


if __name__ == "__main__":
    main()
