"""The fields of a baseline, read in half the time that its models take."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from harness.judge.checked_file import checksum_of


class BlessedSessionView(
    msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A `BlessedSession`."""

    started_at: str
    wall_ms: Annotated[list[float], msgspec.Meta(min_length=1)]
    reference: str = ""
    reference_ms: list[float] = []
    slowed_ms: list[float] = []
    clock_histogram: dict[str, float] = {}
    runtime: str = ""


class BaselineView(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A `Baseline` with the checksum of its file."""

    schema: Literal[1]
    case: str
    identity_key: str
    kind: Literal["latency", "correctness"]
    emulated: tuple[str, ...]
    artifact: str
    tvm: str
    ffi: str
    quirks: tuple[str, ...]
    max_abs_err: float | None
    tolerance: float | None
    facts: dict[str, int]
    settings: dict[str, int] = {}
    network: str = ""
    truth: str = ""
    unchecked: str = ""
    sessions: list[BlessedSessionView]
    sha256: str

    @property
    def is_intact(self) -> bool:
        """Whether it is unedited; False also for numbers that msgspec and Python write differently, such as `1e+16`."""
        text = msgspec.json.encode(self, order="sorted")
        return checksum_of(text.replace(b',"sha256":"%b"' % self.sha256.encode(), b"", 1)) == self.sha256


read_view = msgspec.json.Decoder(BaselineView).decode
"""Read the text of a file. Raises MsgspecError for what is not as `bless` writes it."""
