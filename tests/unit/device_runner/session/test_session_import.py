"""A TVM that cannot be imported, as one that somebody works on may be."""

from __future__ import annotations

import importlib

import pytest

from device_runner.failures import SetupMissing
from device_runner.session import rpc_session
from device_runner.session.rpc_session import open_session


def test_it_is_no_bug_of_ours_and_no_server_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise RuntimeError("no pass of that name")

    monkeypatch.setattr(importlib, "import_module", broken)
    monkeypatch.setattr(rpc_session, "start_server", pytest.fail)
    with (
        pytest.raises(SetupMissing, match="cannot be imported: RuntimeError: no pass of that name") as raised,
        open_session(None, ["server"], {}, timeout_s=1),  # type: ignore[arg-type]
    ):
        pass
    assert "in broken" in raised.value.evidence
