"""A judge: what computes a network outside TVM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from device_runner.device import Array

Values = Mapping[str, Array]


class NoAnswer(Exception):
    """A judge cannot compute this network; the text says why."""


class Refusal(Exception):
    """A judge can compute this network, but not on these inputs; the text names the operator and says why."""


class Judge(Protocol):
    """Computes one network."""

    @property
    def name(self) -> str:
        """Program and version, as a record has them: `onnxruntime 1.23.2`."""

    def ask(self, inputs: Values) -> list[Array]:
        """Return the network's outputs. Raises NoAnswer, Refusal."""


_THEIR_PATHS = re.compile(r"\S*/onnxruntime/\S+\.(cc|h):\d+ ?(.*? was false\. (?=\S))?")


def one_line(error: BaseException) -> str:
    """Return an error as one line of at most 300 characters, without onnxruntime's places and conditions."""
    text = " ".join(_THEIR_PATHS.sub("", str(error)).split())
    return text[:300] or type(error).__name__
