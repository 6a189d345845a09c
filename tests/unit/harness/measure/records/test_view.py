"""Part of a record judges as the whole does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fake_records import IDENTITY, a_record
from hypothesis import given
from hypothesis import strategies as st

from harness.base.outcome import Outcome
from harness.judge.baseline import bless_builds
from harness.judge.sides import side_of
from harness.measure.facts import Accuracy, Reference
from harness.measure.records.record import NotARecord, Record, Releases, parse
from harness.measure.records.view import SessionView, view_parser

TIMES = st.lists(st.floats(), max_size=3)
CLOCKS = st.dictionaries(st.sampled_from(["300", "800"]), st.one_of(st.floats(0, 1), st.text(max_size=2)), max_size=2)
RECORDS = st.builds(
    a_record,
    case=st.sampled_from(["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]),
    identity=st.sampled_from([IDENTITY, replace(IDENTITY, runtime="r")]),
    outcome=st.one_of(st.just(Outcome.OK), st.sampled_from(Outcome)),
    message=st.text(max_size=5),
    artifact=st.sampled_from(["a" * 24, "b" * 24]),
    quirks=st.sampled_from([(), ("one", "two")]),
    as_shipped=st.booleans(),
    quick=st.booleans(),
    wall_ms=st.one_of(TIMES, st.lists(st.floats(1.0, 1.1), min_size=5, max_size=8)),
    device_ms=TIMES,
    steadiness=st.one_of(st.just({}), st.fixed_dictionaries({"clock_histogram": CLOCKS})),
    parts=st.one_of(st.just([]), st.builds(Reference, st.just("kernel"), TIMES, TIMES).map(lambda part: [part])),
    max_abs_err=st.sampled_from([None, 1e-5, 1.0, math.nan]),
    accuracy=st.sampled_from([None, *(Accuracy(right, 0.0, 0.0, 1.0, right, 1.0) for right in (True, False))]),
    vacuous=st.sampled_from([[], ["output 0 is all zero"]]),
    partly_vacuous=st.sampled_from([[], ["output 0 is all zero"]]),
    unchecked=st.sampled_from(["", "no judge"]),
    network=st.sampled_from(["", "n"]),
    truth=st.sampled_from(["", "t"]),
    facts=st.sampled_from([{}, {"image_kernels": 0}, {"image_kernels": 3}]),
    compiled_with=st.sampled_from([None, Releases(tvm="0.25.0", ffi="0.1.12")]),
    started_at=st.sampled_from(["2026-03-01T00:00:00", "2026-03-02T00:00:00"]),
    run=st.sampled_from("ab"),
)
view_of = view_parser(SessionView)


@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_views_make_the_side_that_their_records_make(records: list[Record]) -> None:
    whole, views = [], []
    for line in (record.line().encode() for record in records):
        try:
            whole.append(parse(line))
        except NotARecord:
            with pytest.raises(NotARecord):
                view_of(line)
        else:
            views.append(view_of(line))
    if whole:
        assert repr(side_of(views)) == repr(side_of(whole)), "NaN is not equal to itself"
        assert repr([*bless_builds([views], emulated=True)]) == repr([*bless_builds([whole], emulated=True)])


@pytest.mark.parametrize(
    ("written", "instead"),
    [('"quick":false', '"quick":"no"'), ('"wall_ms":[1.0]', '"wall_ms":["1"]'), ('"schema":2', '"schema":2,"run":"x"')],
)
def test_what_only_the_parser_of_whole_records_reads_is_left_to_it(written: str, instead: str) -> None:
    line = a_record(wall_ms=[1.0]).line().replace(written, instead).encode()
    assert side_of([view_of(line)]) == side_of([parse(line)])
    for torn in (line[:100], line.replace(b'"run"', b'"walk"'), b"[]"):
        with pytest.raises(NotARecord):
            view_of(torn)
