"""The runtimes that the tests share, in every cache that a test makes."""

from pathlib import Path


def link_runtimes(cache: Path, common: Path) -> None:
    """Let a cache have the runtimes of another, and give the other what is compiled for it."""
    for name in ("opencl_runtime", "opencl_layer", "clml_runtime", "probe"):
        (common / name).mkdir(exist_ok=True)
        if not (cache / name).exists():
            (cache / name).symlink_to(common / name)
