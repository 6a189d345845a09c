"""Networks by name and labelled data, which tools bring.

No worker imports this: the list of tools would be a part of every key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from device_runner.names import load
from harness.base.model import ImageFolder
from harness.base.tool import place_of, tools
from harness.compile.models.spec import LabelledData, ModelSource


class NamedModel(ModelSource, Protocol):
    """A network that a tool brings, in the form that is compiled."""

    def outline(self) -> Any:
        """Return the network as an ONNX model to be looked at; the data of its weights may be left out."""


def named_models() -> dict[str, NamedModel]:
    """Return the networks that tools bring, by name (`Tool.models`)."""
    groups: list[tuple[NamedModel, ...]] = [load(tool.models) for tool in tools() if tool.models]
    return {model.name: model for group in groups for model in group}


def labelled_data(data: Path | ImageFolder, score: str, cache: Path) -> LabelledData:
    """Return labelled data, which a function scores if one is named, as a tool reads them (`Tool.labelled`).

    Raises ModelError, SetupMissing.
    """
    opened: LabelledData = load(place_of("labelled"))(data, score, cache)
    return opened
