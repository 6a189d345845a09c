"""The list of knobs; and how they are set, and put back whatever happens. A new knob is a class, and a line here.

What there was is saved in a file on the phone before the first of them is changed, so that it can be put back by
the next run if we are killed: `hold` does that first, and `adreno-bench devices --restore` does nothing else.
What a phone does not let us set is a line in the report and never an error.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from device_runner.failures import DeviceFull
from device_runner.foreign_json import read_json
from device_runner.stability.knobs.android import (
    ANIMATIONS,
    BRIGHTNESS,
    STAY_AWAKE,
    AirplaneMode,
    FixedPerformance,
    Wakefulness,
)
from device_runner.stability.knobs.base import Knob, PhoneAccess
from device_runner.stability.knobs.kgsl import GPU_KNOBS
from device_runner.transport.batch import BatchAnswer, run_batch

KNOBS: tuple[Knob, ...] = (
    STAY_AWAKE,
    Wakefulness(),
    *BRIGHTNESS,
    *ANIMATIONS,
    AirplaneMode(),
    FixedPerformance(),
    *GPU_KNOBS,
)
"""Knobs in the order of setting; they are restored in reverse."""


Report = dict[str, str]
"""Result of each knob, by its name: the value that was read back, or why it is not what we want."""

Saved = dict[str, str]
"""Old values by the name of their knob."""

REFUSED = "refused: "
_COMPLAINTS = ("left alone: ", "not here: ", REFUSED, "reads back ", "not put back: ")

SAVED_FILE = "knobs.json"
SAVED_LIMIT_BYTES = 16_384
SHELL_TIMEOUT_S = 10.0

SAVE_SCRIPT = 'mkdir -p "${1%/*}" && printf %s "$2" >"$1.tmp" && mv "$1.tmp" "$1"'
"""Arguments: the file, its content. It is there whole or not at all."""

NEEDS_ROOT = "it needs root"

log = logging.getLogger(__name__)


def hold(phone: PhoneAccess) -> Report:
    """Set what can be set, once its old value is safe on the phone. Raises `DeviceFailure` if the phone goes away."""
    _, still_changed = _put_back(phone)
    reasons = {k.name: NEEDS_ROOT if k.needs_root and not phone.root_shell else k.why_not(phone) for k in KNOBS}
    report = {name: f"left alone: {why}" for name, why in reasons.items() if why}
    able = [knob for knob in KNOBS if knob.name not in report]
    read = _run(phone, able, {knob.name: knob.read(phone) for knob in able})
    targets = {knob.name: "" if read[knob.name].code else knob.wanted(read[knob.name].text) for knob in able}
    old = {knob.name: knob.value(read[knob.name].text) for knob in able}
    report |= {name: f"not here: {read[name].complaint}" for name, value in targets.items() if not value}
    report |= {name: value for name, value in targets.items() if value and value == old[name]}
    to_set = [knob for knob in able if knob.name not in report]
    try:
        to_restore = {knob.name: old[knob.name] for knob in to_set} | still_changed
        _save(phone, to_restore)
        report |= _set(phone, to_set, targets)
        if unchanged := _refused_and_unchanged(phone, to_set, report, old):
            _save(phone, {name: value for name, value in to_restore.items() if name not in unchanged})
    except DeviceFull as full:
        report |= {knob.name: f"left alone: {full.message}" for knob in to_set}
    return {knob.name: report[knob.name] for knob in KNOBS}


def restore(phone: PhoneAccess) -> Report:
    """Put back what `hold` saved; empty if nothing was. What cannot be put back stays saved. Raises `DeviceFailure`."""
    return _put_back(phone)[0]


def complains(came: str) -> bool:
    """Return whether this line of a report is a reason, instead of a value that was read back."""
    return came.startswith(_COMPLAINTS)


def _put_back(phone: PhoneAccess) -> tuple[Report, Saved]:
    """Return the report, and what is still to be put back."""
    saved = _saved(phone)
    if not saved:
        return {}, {}
    due = [knob for knob in reversed(KNOBS) if knob.name in saved]
    able = [knob for knob in due if phone.root_shell or not knob.needs_root]
    report = {knob.name: f"not put back: {NEEDS_ROOT}" for knob in due} | _set(phone, able, saved)
    report |= _refused_and_unchanged(phone, able, report, saved)
    failed = {knob.name: saved[knob.name] for knob in due if report[knob.name] != saved[knob.name]}
    if failed:
        log.warning("%s: not put back: %s", phone.transport.name, "; ".join(f"{n}: {report[n]}" for n in failed))
    try:
        _save(phone, failed)
    except DeviceFull as full:  # then all of it stays saved, and is put back once more
        log.warning("%s", full)
    return report, failed


def _set(phone: PhoneAccess, knobs: Sequence[Knob], values: Mapping[str, str]) -> Report:
    """Write and read back, all in one round trip for each kind of user."""
    commands = {knob.name: f"{knob.write(phone, values[knob.name])} && {{ {knob.read(phone)}; }}" for knob in knobs}
    answers = _run(phone, knobs, commands)
    return {knob.name: _outcome(knob, answers[knob.name], values[knob.name]) for knob in knobs}


def _refused_and_unchanged(
    phone: PhoneAccess, knobs: Sequence[Knob], report: Report, values: Mapping[str, str]
) -> Saved:
    """Those that the phone refused to set and that have their value all the same: there is nothing to put back."""
    refused = [knob for knob in knobs if report[knob.name].startswith(REFUSED)]
    answers = _run(phone, refused, {knob.name: knob.read(phone) for knob in refused})
    readings = {knob.name: knob.value(answers[knob.name].text) for knob in refused if not answers[knob.name].code}
    return {name: value for name, value in readings.items() if value == values[name]}


def _outcome(knob: Knob, answer: BatchAnswer, value: str) -> str:
    if answer.code:
        return f"{REFUSED}{answer.complaint}"
    reading = knob.value(answer.text)
    return value if reading == value else f"reads back {reading!r} instead of {value!r}"


def _run(phone: PhoneAccess, knobs: Sequence[Knob], commands: Mapping[str, str]) -> dict[str, BatchAnswer]:
    """Run the commands of these knobs in their order, those that need root as root."""
    as_user = {knob.name: commands[knob.name] for knob in knobs if not knob.needs_root}
    as_root = {knob.name: commands[knob.name] for knob in knobs if knob.needs_root}
    return run_batch(phone.transport, as_user) | run_batch(phone.transport, as_root, shell=phone.root_shell)


def _saved(phone: PhoneAccess) -> Saved:
    command = ["head", "-c", str(SAVED_LIMIT_BYTES), _file(phone)]
    answer = phone.transport.shell(command, timeout_s=SHELL_TIMEOUT_S)
    if answer.code:
        return {}
    try:
        saved = read_json(answer.stdout)
        return {str(name): str(value) for name, value in saved.items()}
    except (ValueError, AttributeError):
        log.warning("%s: what to put back is unreadable: %.200r", phone.transport.name, answer.stdout)
        return {}


def _save(phone: PhoneAccess, values: Saved) -> None:
    """Keep what is to be put back; nothing is no file. Raises `DeviceFull` if the phone does not take it."""
    if not values:
        phone.transport.shell(["rm", "-f", _file(phone)], timeout_s=SHELL_TIMEOUT_S)
        return
    command = ["sh", "-c", SAVE_SCRIPT, "save", _file(phone), json.dumps(values)]
    answer = phone.transport.shell(command, timeout_s=SHELL_TIMEOUT_S)
    if answer.code:
        raise DeviceFull(f"{phone.transport.name} cannot save the settings that a run has to restore: {answer.stderr}")


def _file(phone: PhoneAccess) -> str:
    return f"{phone.transport.root}/{SAVED_FILE}"
