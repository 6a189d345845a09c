"""A number that a person's own function makes of labelled data: mAP of a detector, say.

The function is trusted code, as the suite that names it is. It gets the outputs of each batch, and all labels, and
returns the number's name and the number, of which more is better.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from device_runner.device import Array
from device_runner.store import sha256_of
from harness.base.failures import ModelError

Ask = Callable[[Array], Sequence[Array]]

SCORED, SCORE = "scored.npz", "score.json"
"""Labelled inputs and their labels, where a function scores the outputs, and the name and number of the oracle's."""
SUFFIX = ".py"
LARGEST_BYTES = 2 << 30
"""What all outputs together may take."""
EXAMPLE = 'let it end with `return "mAP", 0.41`'


def score_of(place: str, outputs: Sequence[Sequence[Array]], labels: Array) -> tuple[str, float]:
    """Call the function at a place. Raises ModelError in one line for whatever it does wrong.

    Args:
        place: `MODULE:FUNCTION` or `FILE.py:FUNCTION`.
        outputs: Of each batch the model's outputs, in their order.
        labels: As they are in the file of labelled data.
    """
    function = load_function(place)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output belongs to our result
            answer = function(outputs, labels)
    except Exception as error:  # the code of others
        raise ModelError(f"{place} failed: {_line_of(error)}", hint="correct `score` of the model") from error
    name, number = answer if isinstance(answer, tuple) and len(answer) == 2 else ("", answer)
    try:
        value = float(number)
    except (TypeError, ValueError):
        value = math.nan
    if not isinstance(name, str) or not name or not math.isfinite(value):
        text = repr(answer)
        quoted = text if len(text) <= 80 else f"{text[:77]}..."
        raise ModelError(f"{place} returned {quoted}, and not a name and a number", hint=EXAMPLE)
    return name, value


def load_function(place: str) -> Callable[[Sequence[Sequence[Array]], Array], Any]:
    """Import the function at a place. Raises ModelError."""
    module, _, name = place.rpartition(":")
    hint = "put the file beside the suite, or set PYTHONPATH to its folder"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            file = Path(module) if module.endswith(SUFFIX) else None
            loaded = _load_file(file, file.stat().st_mtime_ns) if file else importlib.import_module(module)
    except Exception as error:  # the code of others
        raise ModelError(f"{place} cannot be loaded: {_line_of(error)}", hint=hint) from error
    function = getattr(loaded, name, None)
    if not callable(function):
        raise ModelError(f"{module} has no function {name!r}", hint="correct `score` of the model in the suite")
    return function  # type: ignore[no-any-return]


def digest_of(place: str) -> str:
    """Hash of what is known of a function: of its file, if it is named by one."""
    module, _, name = place.rpartition(":")
    return f"{sha256_of(Path(module))}:{name}" if module.endswith(SUFFIX) else place


def outputs_of(ask: Ask, inputs: Array, batch: int) -> list[list[Array]]:
    """Return the outputs of each batch. Raises ModelError if they take too much memory."""
    outputs: list[list[Array]] = []
    for at in range(0, len(inputs), batch):
        outputs.append(list(ask(inputs[at : at + batch])))
        size = sum(array.nbytes for array in outputs[0]) * (len(inputs) // batch)
        if size > LARGEST_BYTES:
            most = len(inputs) * LARGEST_BYTES // size
            hint = f"label {most} inputs at most"
            raise ModelError(f"the outputs for {len(inputs)} labelled inputs take {size} bytes", hint=hint)
    return outputs


@lru_cache(maxsize=16)
def _load_file(file: Path, _changed: int) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not spec or not spec.loader:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _line_of(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
