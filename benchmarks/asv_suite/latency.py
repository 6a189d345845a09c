"""How long one inference takes, by two clocks. A case that is not right has no latency."""

from __future__ import annotations

from .measured import Measured


class Clock:
    """asv's timer: it stands still but for what the device says that an inference took."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Seconds since the first inference."""
        return self.now_s


class _Latency(Measured):
    """One sample is one inference, in the order taken: what asv computes of them, it computes of the device's own."""

    number = 1
    rounds = 1
    warmup_time = 0
    repeat = 1

    def __init__(self) -> None:
        self.timer = Clock()
        self.samples_ms: list[float] = []
        self._next = 0

    def _use(self, samples_ms: list[float]) -> None:
        """Keep the clock outside of `setup`, which asv calls before every sample."""
        self.require_right()
        if not samples_ms:
            raise NotImplementedError("emulated: its time means nothing")
        self.samples_ms = samples_ms
        self.repeat = len(samples_ms)

    def _infer(self) -> None:
        self.timer.now_s += self.samples_ms[self._next] / 1e3
        self._next += 1


class Wall(_Latency):
    """To the answer in the device's host memory, by the device's own clock."""

    def setup(self, case: str, quirks: str) -> None:
        """Take the samples."""
        super().setup(case, quirks)
        self._use(self.record.wall_ms)

    def time_inference(self, case: str, quirks: str) -> None:
        """One inference."""
        self._infer()


class Device(_Latency):
    """The sum of the kernels' times: without launch gaps and without the host's share."""

    def setup(self, case: str, quirks: str) -> None:
        """Take the samples."""
        super().setup(case, quirks)
        self._use(self.record.device_ms)

    def time_inference(self, case: str, quirks: str) -> None:
        """One inference."""
        self._infer()
