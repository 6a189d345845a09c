"""Cases as tables of other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args, get_origin

from device_runner.failures import SetupMissing
from harness.judge.report.exports import CaseExport

if TYPE_CHECKING:
    import pandas


def data_frame(cases: Iterable[CaseExport]) -> pandas.DataFrame:
    """Return a row for each case, samples as lists. Raises SetupMissing without pandas."""
    try:
        import pandas
    except ImportError:
        raise SetupMissing("pandas is not installed", hint="pip install 'adreno-bench[pandas]'") from None
    return pandas.DataFrame([case.plain() for case in cases], columns=list(CaseExport.model_fields))


def arrow_table(cases: Iterable[CaseExport]) -> Any:
    """Return a row for each case as a table of pyarrow. Raises SetupMissing without that."""
    try:
        import pyarrow
    except ImportError:
        raise SetupMissing("pyarrow is not installed", hint="pip install 'adreno-bench[records]'") from None
    columns = [(name, _arrow_type(field.annotation, pyarrow)) for name, field in CaseExport.model_fields.items()]
    return pyarrow.Table.from_pylist([case.plain() for case in cases], pyarrow.schema(columns))


def _arrow_type(annotation: Any, pyarrow: Any) -> Any:
    """Return Arrow's type of a field of `CaseExport`: every column has one, whatever its values."""
    if get_origin(annotation) is list:
        return pyarrow.list_(_arrow_type(get_args(annotation)[0], pyarrow))
    kinds = get_args(annotation) or (annotation,)
    types = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()}
    return next((types[kind] for kind in kinds if kind in types), pyarrow.string())
