"""Looks at a device's heat and clock while it works, never while it is timed: a look takes time of its cores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from device_runner.device import Device, Pulse, ThermalLimits
from device_runner.failures import Failure

LOOK_EVERY_S = 2.0
END_S = 1.0
"""Seconds that the end of a watch waits for its last reading, which has a deadline of its own."""
Tell = Callable[[Pulse], None]


class DeviceWatch:
    """Reports the state of one device, except while `paused`."""

    def __init__(self, tell: Tell | None = None) -> None:
        """Without `tell` nobody wants to know, and no device is looked at."""
        self._tell = tell
        self._looking = threading.Lock()
        self._ended = threading.Event()

    def paused(self) -> threading.Lock:
        """Return a context manager, during which only `note` reports anything."""
        return self._looking

    def note(self, pulse: Pulse) -> None:
        """Report a state that a sustained run has read."""
        if self._tell:
            self._tell(pulse)

    @contextmanager
    def looking_at(self, device: Device) -> Iterator[DeviceWatch]:
        """Read a device's state every two seconds until the context ends."""
        if not self._tell:
            yield self
            return
        thread = threading.Thread(target=self._look_on, args=(device, self._tell), name="device watch", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join(END_S)

    def _look_on(self, device: Device, tell: Tell) -> None:
        look = device.pulses(ThermalLimits())
        while not self._ended.is_set():
            with self._looking:
                try:
                    pulse = look()
                except Failure:  # of a lost device the case itself says more
                    pulse = None
            if pulse and not self._ended.is_set():
                try:
                    tell(pulse)
                except OSError:  # nobody listens any more
                    return
            self._ended.wait(LOOK_EVERY_S)
