"""What builders and a shared store cost: two workers of Dask against the pool of this host, on the same two cores.

    python -m benchmarks.builders_cost [--model NAME]... [--turns N] [--store URL]

Builds the default suite, or models on its paths, in turns here and by two workers, each time from
empty caches and an empty store. Workers are started before the clock is. Prints the ratios of elapsed time and of
processor time, and what went into the store. Goal: 1.1 on an idle machine: on a busy one, what Dask's processes do
every second counts for as long as the builds wait.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from device_runner.device import Identity
from device_runner.failures import Failure
from device_runner.runtimes import clml
from device_runner.store import cache_root
from harness.base.plan import Job
from harness.base.suite import Limits, suite_of
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder
from harness.tools.builders.dask_builders import DaskBuilders
from harness.tools.builders.shared_store import ObjectStore

WORKERS = 2
KEPT = cache_root()


class Cost(NamedTuple):
    """Seconds of one turn."""

    elapsed_s: float
    cpu_s: float


def jobs_of(models: list[str], cache: Path) -> list[Job]:
    """Return what a host needs to measure models, or the default suite."""
    suite = suite_of(Path(__file__).parents[1] / "adreno-bench.toml", models)
    plans = [plan_case(suite, case, Identity("none", "none"), cache) for case in suite.cases]
    return [job for plan in plans for job in plan.jobs]


def cpu_s(processes: list[psutil.Process]) -> float:
    """Return processor time of processes and of those that they have waited for."""
    return sum(sum(process.cpu_times()[:4]) for process in processes)


@contextmanager
def clock(processes: list[psutil.Process]) -> Iterator[list[Cost]]:
    """Time a block: its cost is in the list afterwards."""
    costs: list[Cost] = []
    began, before = time.perf_counter(), cpu_s(processes)
    yield costs
    costs.append(Cost(time.perf_counter() - began, cpu_s(processes) - before))


def build(jobs: list[Job], builder: Builder) -> None:
    """Build all. Exits if one fails."""
    if failures := [made for made in builder.build(jobs).values() if isinstance(made, Failure)]:
        raise SystemExit(f"{failures[0]}")


def new_cache(folder: Path) -> Path:
    """Make a cache, which processes that we start use, with nothing but the runtime of CLML."""
    folder.mkdir()
    (folder / "clml_runtime").symlink_to(clml.library(KEPT).parents[1])
    os.environ["ADRENO_BENCH_CACHE"] = str(folder)
    return folder


def here(models: list[str], folder: Path) -> Cost:
    """Build in this host's pool."""
    jobs = jobs_of(models, new_cache(folder))
    with clock([psutil.Process()]) as costs, Builder(folder, Limits(), processes=WORKERS) as builder:
        build(jobs, builder)
    return costs[0]


def elsewhere(models: list[str], folder: Path, url: str) -> Cost:
    """Build by workers of Dask, with one job each at a time."""
    from distributed import LocalCluster

    jobs, ours = jobs_of(models, new_cache(folder / "host")), psutil.Process()
    new_cache(folder / "workers")
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None))
        workers = [child for child in ours.children(recursive=True) if "spawn_main" in " ".join(child.cmdline())]
        store = ObjectStore(url, print)
        with clock([ours, *workers]) as costs:
            remote = DaskBuilders(cluster.scheduler_address, store, print)
            with Builder(folder / "host", Limits(), shared=store, remote=remote) as builder:
                build(jobs, builder)
    return costs[0]


def main() -> None:
    """Take turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--store", help="by default a folder")
    chosen = parser.parse_args()
    pairs = []
    for turn in range(chosen.turns):
        with tempfile.TemporaryDirectory(prefix="builders-cost-") as temporary:
            folder = Path(temporary)
            url = f"{chosen.store or f'file://{folder}/store'}/{os.getpid()}-{turn}"
            pairs.append((here(chosen.model, folder / "local"), elsewhere(chosen.model, folder, url)))
            local, remote = pairs[-1]
            print(
                f"here {local.elapsed_s:.1f} s, {local.cpu_s:.1f} s of processor time; "
                f"by builders {remote.elapsed_s:.1f} s, {remote.cpu_s:.1f} s",
                flush=True,
            )
            if not chosen.store:
                _show_store(folder)
    for name in Cost._fields:
        ratio = statistics.median(getattr(remote, name) / getattr(local, name) for local, remote in pairs)
        print(f"{name}: {ratio:.2f} times as much by builders (goal: 1.1)")


def _show_store(folder: Path) -> None:
    objects = [file.stat().st_size for file in folder.glob("store/*/objects/*")]
    kept = [file for kind in ("artifacts", "oracles") for file in (folder / "host" / kind).rglob("*") if file.is_file()]
    print(
        f"the store took {sum(objects) / 1e6:.1f} MB; the host has {sum(f.stat().st_size for f in kept) / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
