"""What tests of the real components share: runtimes that are compiled once, and a cache of their own."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def sidecar_cache(pytestconfig: pytest.Config) -> Path:
    """Where our OpenCL and CLML runtimes are kept from run to run."""
    return Path(pytestconfig.cache.mkdir("sidecar"))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, sidecar_cache: Path) -> Path:
    """A cache that is new but for the runtimes: what one test builds, the others take from the store."""
    folder = tmp_path_factory.mktemp("cache")
    for runtime in ("opencl_runtime", "clml_runtime"):
        (sidecar_cache / runtime).mkdir(exist_ok=True)
        (folder / runtime).symlink_to(sidecar_cache / runtime)
    return folder
