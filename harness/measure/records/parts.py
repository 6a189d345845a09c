"""The parts of a record: values by name, each of a frozen type that the main job or a tool registers.

Those of the main job are read with their record. Those of tools are JSON values until somebody asks for one: no tool is
loaded to write or to read a record, and a part of a tool that is not installed stays as it is.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from device_runner.device import PeakMemory
from harness.base.failures import UsageError
from harness.base.tool import places
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.measure.facts import Batches, Reference, Sampling, WitnessReport

T = TypeVar("T")


class CoreParts(TypedDict, total=False):
    """The main job's parts; `Tool.record_parts` has those of tools."""

    __pydantic_config__ = ConfigDict(extra="allow", ser_json_inf_nan="strings")  # type: ignore[misc]

    sampling: Sampling
    reference: Reference
    batches: Batches
    memory: PeakMemory
    witness: WitnessReport
    offload: OffloadReport


Parts = Annotated[dict[str, Any], GetPydanticSchema(lambda _, handler: handler(CoreParts))]
CORE = {kind: name for name, kind in get_type_hints(CoreParts).items() if name in CoreParts.__annotations__}


def part_name(kind: type) -> str | None:
    """Return the name under which a record keeps a value of this type; None if the type is no part."""
    place_name = f"{kind.__module__}:{kind.__qualname__}"
    return CORE.get(kind) or next((name for name, place in places("record_parts") if place == place_name), None)


def parts_of(*values: object) -> dict[str, Any]:
    """Choose the parts among these values, by their names and as a record keeps them."""
    plain = partial(to_jsonable_python, inf_nan_mode="strings")
    names = [(part_name(type(value)), value) for value in values]
    return {name: value if type(value) in CORE else plain(value) for name, value in names if name}


def read_part(kind: type[T], parts: dict[str, Any], case: str) -> T | None:
    """Return the part of this type; None without one. Raises UsageError for a value of another form."""
    name = part_name(kind)
    assert name, f"{kind.__name__} is not registered as a part"
    value = parts.get(name)
    if value is None or isinstance(value, kind):
        return value
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, (name, *problem["loc"])))
        hint = "remove its line from the records, or upgrade adreno-bench"
        raise UsageError(f"a record of {case} cannot be read ({where}: {problem['msg']})", hint=hint) from None
