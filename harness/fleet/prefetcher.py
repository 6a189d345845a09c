"""Building ahead of the devices: each thing once, in the background, in the order in which it will be wanted."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING

from harness.build.pool import Builder
from harness.cases.plan import Job
from harness.process import cores

if TYPE_CHECKING:
    from typing_extensions import Self

    from device_runner.failures import Failure
    from harness.build.artifact import Answers, Artifact
    from harness.cases.plan import Plan


class Prefetcher:
    """Builds for several devices. A context manager: leaving it drops what has not begun."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._pool = ThreadPoolExecutor(cores(), thread_name_prefix="prefetcher")
        self._futures: dict[str, Future[Artifact | Answers | Failure]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def want(self, plans: Iterable[Plan]) -> None:
        """Build what these need, after what was wanted before."""
        for plan in plans:
            for job in plan.jobs:
                if job.key not in self._futures:
                    self._futures[job.key] = self._pool.submit(self._make, job)

    @property
    def busy(self) -> bool:
        """Whether anything is still to be built."""
        return not all(future.done() for future in self._futures.values())

    def has(self, plan: Plan) -> bool:
        """Whether all that a plan needs is there, or has failed."""
        return all(self._futures[job.key].done() for job in plan.jobs)

    def built(self, plan: Plan) -> dict[str, Artifact | Answers | Failure]:
        """What a plan needs, by key. Raises what is nobody's fault but ours."""
        return {job.key: self._futures[job.key].result() for job in plan.jobs}

    def _make(self, job: Job) -> Artifact | Answers | Failure:
        return self._builder.build([job])[job.key]
