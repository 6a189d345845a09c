"""State that all cases of one run share: the device, its tunings, and the origin of records."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from device_runner.device import Device, Identity, Permission, Rung
from device_runner.recovery.ladder import Recovery
from harness.compile.compiler.releases import harness_version, versions
from harness.measure.device_watch import DeviceWatch
from harness.measure.tuning import TuningStore

if TYPE_CHECKING:
    from harness.compile.artifacts.pool import Builder
    from harness.measure.probes.base import Probe, Step
    from harness.measure.work import Preparation, Work


def new_id() -> str:
    """Return a text common to all records of one run and to those of no other."""
    return uuid.uuid4().hex[:12]


def made_here() -> dict[str, str]:
    """Return the releases of TVM, tvm-ffi and this harness by their names in a record. Raises SetupMissing."""
    return {**versions(), "harness": harness_version()}


@dataclass(frozen=True)
class Origin:
    """Origin of a record. Plain values, so that a device that is gone can still have records."""

    device: str
    """Value of `--device`."""
    identity: Identity
    as_shipped: bool
    run: str
    """The run's id."""
    made_by: Mapping[str, str] = field(default_factory=made_here)
    """Releases of TVM, of tvm-ffi and of this harness, by the names that they have in a record."""
    models: str = ""
    """Words of the command line that name the models; empty where the suite does."""


@dataclass(frozen=True)
class Run:
    """One run on one device."""

    device: Device
    tunings: TuningStore
    as_shipped: bool = False
    timed: bool = True
    """Whether right answers are also timed. Correctness tests have no use for it."""
    allowed: frozenset[Permission] = frozenset()
    """Recovery steps that need permission: USB power, reboot."""
    id: str = field(default_factory=new_id)
    probes: Callable[[Work, Preparation, Run, Step], Sequence[Probe]] | None = None
    """Chooses what is measured of a case that is right; None for `harness.measure.standard_probes`."""
    further_probes: Callable[[Work], Sequence[Probe]] = lambda _: ()
    """Chooses what is measured after that: what a history watches."""
    made_by: Mapping[str, str] = field(default_factory=made_here)
    """What compiled and packed what is run: what is installed here, unless it came from elsewhere."""
    models: str = ""
    """Words of the command line that name the models; empty where the suite does."""
    builder: Builder | None = None
    """Makes what is found to be needed only while a case runs: the second witness. None where nothing can be made."""
    names_operators: bool = True
    """Whether the first operator is named that TVM's importer gets wrong. That takes a build of its own."""
    watch: DeviceWatch = field(default_factory=DeviceWatch)
    """Reports the device's state while it is not timed."""
    recovery: Recovery = field(default_factory=Recovery)
    """State of the device that is kept from case to case."""

    @property
    def origin(self) -> Origin:
        """Origin that its records name."""
        return Origin(self.device.name, self.device.identity, self.as_shipped, self.id, self.made_by, self.models)

    @property
    def rungs(self) -> Sequence[Rung]:
        """Recovery steps for the device, gentlest first."""
        return [rung for rung in self.device.rungs if rung.needs is None or rung.needs in self.allowed]
