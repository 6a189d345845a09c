"""What the checks of the tree share."""

from collections.abc import Iterator

import pytest

from harness.measure.records.view import without_garbage_collection


@pytest.fixture(autouse=True)
def _keep_syntax_trees() -> Iterator[None]:
    """Parse hundreds of files without looking for garbage among their trees: a seventh of the time that it takes."""
    with without_garbage_collection():
        yield
