"""What the tests of whole commands and pages share."""

from collections.abc import Iterator

import pytest

from benchmarks.browser import Page, browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A real browser."""
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page
