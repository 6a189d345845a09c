"""From artifacts in the store to what the open compiler makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from device_runner.store import Store, cache_root
from harness.build.artifact import KERNELS
from harness.build.pool import stored
from harness.compiler.work import Work
from harness.failures import UsageError
from harness.isa.compiled import compile_kernels
from harness.isa.network import Network, network
from harness.isa.source import sources
from harness.isa.toolchain import Toolchain


def networks(toolchain: Toolchain, artifacts: Mapping[str, str], gpus: Sequence[str]) -> list[Network]:
    """Each case on each GPU; `artifacts` are keys of the store by case. Kernels of several cases are compiled once.

    Raises UsageError for an artifact that is no longer in the store, and what `compile_kernels` raises.
    """
    cache = cache_root()
    texts = {case: sources(_source(case, key)) for case, key in artifacts.items()}
    compiled = compile_kernels(toolchain, cache, [kernel for text in texts.values() for kernel in text], gpus)
    found = []
    for gpu in gpus:
        of_gpu = iter(compiled[gpu])
        for case, kernels in texts.items():
            made = [next(of_gpu) for _ in kernels]
            manifest = stored(cache, artifacts[case])
            found.append(network(case, gpu, artifacts[case], made, manifest.compiled.launches if manifest else None))
    return sorted(found, key=lambda one: list(artifacts).index(one.case))


def work_of(key: str) -> list[Work]:
    """What the operators of an artifact have to do; nothing if that was not noted, or if it is gone."""
    manifest = stored(cache_root(), key)
    return [Work(**one) for one in (manifest.compiled.work or ())] if manifest else []


def _source(case: str, key: str) -> str:
    folder = Store(cache_root(), "artifacts").find(key)
    if folder is None:
        raise UsageError(f"what was built of {case} is not in the cache", hint="`adreno-bench build` makes it again")
    file = folder / KERNELS
    return file.read_text(encoding="utf-8") if file.exists() else ""
