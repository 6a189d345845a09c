"""What the oracle answers to labelled data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from device_runner.device import Array
from harness.base.failures import ModelError
from harness.base.tables import counted
from harness.compile.artifacts.artifact import LABELLED, save_arrays
from harness.compile.models.spec import InputSpec
from harness.tools.labelled.data import best_classes, load_labelled
from harness.tools.labelled.score import SCORE, SCORED, outputs_of, score_of

Ask = Callable[[Mapping[str, Array]], list[Array]]


def write_answers(out: Path, file: Path, score: str, specs: Sequence[InputSpec], ask: Ask) -> None:
    """Write labelled data with the oracle's classes, or with a function's score. Worker only.

    Raises ModelError, which names the data's file or the function at fault.
    """
    culprits = (str(file), *([Path(score).name] if score else []))
    try:
        _write(out, file, score, specs, ask)
    except ModelError as error:
        why = error.message if any(name in error.message for name in culprits) else f"{file}: {error.message}"
        raise ModelError(why, hint=error.hint, evidence=error.evidence) from error


def _write(out: Path, file: Path, score: str, specs: Sequence[InputSpec], ask: Ask) -> None:
    data = load_labelled(file, specs, scored=bool(score))
    (spec,) = specs
    how = (lambda rows: ask({spec.name: rows})), data.inputs, spec.shape[0]
    if score:
        number = score_of(score, outputs_of(*how), data.labels)
        (out / SCORE).write_text(json.dumps(number), encoding="utf-8")
        save_arrays(out / SCORED, [data.inputs, data.labels])
    else:
        require_classes(data.labels, ask({spec.name: data.inputs[: spec.shape[0]]})[0].size // spec.shape[0])
        save_arrays(out / LABELLED, [data.inputs, data.labels, best_classes(*how)])


def require_classes(labels: Array, classes: int) -> None:
    """Raise ModelError for a label that no answer can have."""
    if strange := [int(label) for label in labels if not 0 <= label < classes]:
        what = f"{counted(len(strange), 'label')} of {len(labels)}, such as {strange[0]}, cannot be right"
        raise ModelError(f"{what}: the model has {counted(classes, 'class', 'classes')}", hint="count them from 0")
