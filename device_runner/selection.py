"""Which devices a person means after `--device`: a name, `all`, `virtual:8`, or labels (`soc=SM8650`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote

from device_runner.device import DeviceEntry, Identity
from device_runner.failures import Failure
from device_runner.files import write_whole
from device_runner.registry import (
    LOCAL,
    MOST_VIRTUAL,
    VIRTUAL,
    UnknownDevice,
    is_built_in,
    list_devices,
    open_device,
    unknown,
)

ALL = "all"
LABELS = ("name", "kind", "soc", "gpu", "driver", "clml", "rom", "abi", "model", "product", "device")
"""What a device can be chosen by: fields of its identity, and what adb says of it."""

SHOWN_LABELS = ("soc", "gpu", "abi")

Say = Callable[[str], None]


class AmbiguousDevice(Failure):
    """Several devices match where one is needed."""

    outcome = "usage"


def select(texts: Sequence[str], cache: Path, say: Say = lambda _: None) -> list[str]:
    """Resolve names and labels to devices, each once, in the order given.

    Labels and `all` mean devices that are ready; `say` is told which are left out, and why. A device that was never
    opened is opened to learn its labels. Raises `UnknownDevice` if one of `texts` matches nothing, `AmbiguousDevice`
    for devices that cannot be used together.
    """
    names = _Resolver.of(texts, cache, say).names(texts)
    _require_own_cores(names)
    return names


def select_one(text: str, cache: Path, say: Say = lambda _: None) -> str:
    """Return the one device that is meant. Raises `AmbiguousDevice` naming all if there are several."""
    names = _Resolver.of([text], cache, say).names([text])
    if len(names) > 1:
        message = f"{text!r} matches {len(names)} devices where one is needed: {', '.join(names)}"
        raise AmbiguousDevice(message, hint="name one of them")
    return names[0]


def labels_of(entry: DeviceEntry, identity: Identity | None) -> dict[str, str]:
    """Labels of a device, as far as they are known."""
    facts = vars(identity) if identity else {}
    everything = {**entry.detail, **facts, "name": entry.name, "kind": entry.kind}
    return {label: str(everything[label]) for label in LABELS if everything.get(label)}


def parse_labels(text: str) -> dict[str, str] | None:
    """`soc=SM8650,abi=arm64-v8a` as a mapping; None if the text is no such thing. Raises `UnknownDevice`."""
    if "=" not in text:
        return None
    parts = (part.partition("=") for part in text.split(","))
    pairs = {label.strip(): value.strip() for label, _, value in parts}
    if strange := sorted(set(pairs) - set(LABELS)):
        raise UnknownDevice(f"there is no label {strange[0]!r}", hint=f"labels are {', '.join(LABELS)}")
    return pairs


def matches(labels: Mapping[str, str], query: Mapping[str, str]) -> bool:
    """Return whether every wanted label is there with a value that matches as a shell glob; case does not matter."""
    return all(fnmatchcase(labels.get(label, "").lower(), value.lower()) for label, value in query.items())


def _require_own_cores(names: Sequence[str]) -> None:
    """Raise `AmbiguousDevice` for devices that would disturb each other's times, which no record would show."""
    here = [name for name in names if is_built_in(name)]
    if len(here) > 1 and {VIRTUAL, LOCAL} & set(here):
        message = f"{' and '.join(here)} compute on the same cores of this host and cannot be measured together"
        raise AmbiguousDevice(message, hint=f"run one after the other, or try a fleet with {VIRTUAL}:{len(here)}")


@dataclass(frozen=True)
class _Resolver:
    """Finds the devices that a text means, among those that are attached."""

    entries: Sequence[DeviceEntry]
    cache: Path
    say: Say

    @classmethod
    def of(cls, texts: Sequence[str], cache: Path, say: Say) -> _Resolver:
        """Look which devices are attached, unless built-in ones are all that is wanted."""
        return cls([] if all(is_built_in(text) for text in texts) else list_devices(cache), cache, say)

    def names(self, texts: Sequence[str]) -> list[str]:
        """Return the names that are meant, each once. Raises `UnknownDevice`."""
        return list(dict.fromkeys(name for text in texts for name in self._match(text)))

    def _match(self, text: str) -> list[str]:
        names = [entry.name for entry in self.entries]
        if text in names or is_built_in(text):
            return [text]
        if text == ALL:
            return _all(self.entries, self.say)
        if match := re.fullmatch(rf"{VIRTUAL}:(\d{{1,3}})", text):
            return _virtual(int(match[1]))
        labels = parse_labels(text)
        if labels is None:
            raise unknown(text, names)
        fitting = [entry.name for entry in self.entries if self._fits(entry, labels)]
        if not fitting:
            hint = "there are: " + "; ".join(map(self._describe, self.entries))
            raise UnknownDevice(f"no device that is ready matches {text!r}", hint=hint)
        return fitting

    def _fits(self, entry: DeviceEntry, query: Mapping[str, str]) -> bool:
        labels = labels_of(entry, None)
        if not matches(labels, {label: value for label, value in query.items() if label in labels}):
            return False  # what is known without opening it suffices
        return is_ready(entry, self.say) and matches(labels_of(entry, self._identity(entry)), query)

    def _identity(self, entry: DeviceEntry) -> Identity | None:
        """Return the identity of a device when it was last opened; else open it."""
        if identity := recall_identity(entry.name, self.cache):
            return identity
        self.say(f"asking {entry.name} who it is")
        try:
            with open_device(entry.name, self.cache, timeout_s=0) as device:
                remember_identity(entry.name, device.identity, self.cache)
                return device.identity
        except Failure as failure:
            self.say(f"{entry.name} is left out: {failure}")
            return None

    def _describe(self, entry: DeviceEntry) -> str:
        if entry.state != "ready":
            return f"{entry.name} ({entry.state})"
        labels = labels_of(entry, self._identity(entry))
        text = ", ".join(f"{label}={labels[label]}" for label in SHOWN_LABELS if label in labels)
        return f"{entry.name} ({text})" if text else entry.name


def _all(entries: Sequence[DeviceEntry], say: Say) -> list[str]:
    phones = [entry for entry in entries if entry.kind == "phone"]
    if not phones:
        say(f"no phone is attached: `{ALL}` means {VIRTUAL}")
        return [VIRTUAL]
    if ready := [entry.name for entry in phones if is_ready(entry, say)]:
        return ready
    states = ", ".join(f"{entry.name} is {entry.state}" for entry in phones)
    raise UnknownDevice(f"no attached phone is ready: {states}", hint="`adreno-bench devices` lists them")


def _virtual(count: int) -> list[str]:
    if not 1 <= count <= MOST_VIRTUAL:
        raise UnknownDevice(f"there are no {count} virtual devices", hint=f"{VIRTUAL}:1 to {VIRTUAL}:{MOST_VIRTUAL}")
    return [f"{VIRTUAL}-{number}" for number in range(1, count + 1)]


def is_ready(entry: DeviceEntry, say: Say) -> bool:
    """Return whether a device can be used; if not, say why."""
    if entry.state != "ready":
        who = entry.owner or entry.detail.get("used by", "")
        say(f"{entry.name} is left out: it is {entry.state}{f', used by {who}' if who else ''}")
    return entry.state == "ready"


def remember_identity(name: str, identity: Identity, cache: Path) -> None:
    """Store the identity of a device. Atomic, and written only if it changed."""
    if recall_identity(name, cache) == identity:
        return
    write_whole(_identity_file(name, cache), json.dumps(asdict(identity)))


def recall_identity(name: str, cache: Path) -> Identity | None:
    """Return the identity of a device when it was last opened; None if it never was."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Identity).validate_json(_identity_file(name, cache).read_bytes())
    except (OSError, ValidationError):
        return None


def _identity_file(name: str, cache: Path) -> Path:
    return cache / "identities" / f"{quote(name, safe='')}.json"
