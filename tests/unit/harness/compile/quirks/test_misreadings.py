"""Networks that TVM's importer misreads are refused by name; their like, which it reads right, are not."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from defects.misreadings import EXAMPLES, network, resize

from harness.base.failures import CompileFailure, MisreadOperator, revived
from harness.base.outcome import Outcome, Owner
from harness.compile.quirks.misreadings import MISREADINGS, Misreading
from harness.measure.decide import decide
from harness.measure.facts import Facts

every = pytest.mark.parametrize("misreading", MISREADINGS, ids=lambda one: one.id)


@every
def test_the_smallest_network_that_shows_it_is_refused_by_name_with_what_to_do(misreading: Misreading) -> None:
    model = EXAMPLES[misreading.id]()
    with pytest.raises(MisreadOperator, match=f"misreads {misreading.operator} 'y0': ") as raised:
        misreading.refuse(model)
    assert raised.value.hint == misreading.hint


READ_RIGHT = {
    "whole pixels": partial(resize, scales=(2.0, 2.0), mode="linear"),
    "whole pixels in float32, as onnxruntime counts them": partial(
        network,
        "Resize",
        (1, 1, 5, 5),
        [np.zeros(0, np.float32), np.array([1, 1, 1.8, 1.8], np.float32)],
        mode="linear",
    ),
    "sizes": partial(resize, sizes=(11, 13), mode="cubic"),
    "sizes that keep the proportions": partial(
        network,
        "Resize",
        (1, 1, 7, 9),
        [None, None, np.array([14, 18])],
        axes=[2, 3],
        keep_aspect_ratio_policy="not_larger",
    ),
    "aligned corners": partial(
        resize, scales=(1.7, 1.7), mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "antialias of a larger image": partial(resize, sizes=(14, 18), mode="linear", antialias=1),
    "dropout": partial(network, "Dropout", (4, 8), [np.float32(0.5), np.bool_(False)]),
    "dropout of nothing": partial(network, "Dropout", (4, 8), [np.float32(0), np.bool_(True)]),
    "average": partial(
        network, "RoiAlign", (1, 1, 8, 8), [np.zeros((1, 4), np.float32), np.zeros(1, np.int64)], output_height=2
    ),
    "layer norm": partial(network, "LayerNormalization", (2, 4), [np.ones(4, np.float32)]),
    "batch norm in training that nobody asks for its statistics": partial(
        network, "BatchNormalization", (2, 1, 3), [np.ones(1, np.float32)] * 4, training_mode=1
    ),
    "statistics that are mixed half and half": partial(
        network,
        "BatchNormalization",
        (2, 1, 3),
        [np.ones(1, np.float32)] * 4,
        outputs=3,
        training_mode=1,
        momentum=0.5,
    ),
    "depth": partial(network, "SpaceToDepth", (1, 2, 4, 6), [], blocksize=2),
    "transposed": partial(network, "ConvTranspose", (1, 1, 3, 3), [np.ones((1, 1, 3, 3), np.float32)]),
}


IGNORED = {
    "proportions": partial(resize, sizes=(14, 19), keep_aspect_ratio_policy="not_larger", mode="linear"),
    "aligned corners": partial(
        resize,
        sizes=(14, 20),
        keep_aspect_ratio_policy="not_larger",
        coordinate_transformation_mode="align_corners",
    ),
    "channels": partial(network, "Resize", (1, 2, 5, 5), [None, np.array([1, 1.5, 1, 1], np.float32)], mode="nearest"),
}


@pytest.mark.parametrize("name", IGNORED)
def test_a_resize_of_what_tvm_leaves_as_it_is_is_refused(name: str) -> None:
    misreading = next(each for each in MISREADINGS if each.id == "misread-resize-scales")
    with pytest.raises(MisreadOperator, match="enlarges"):
        misreading.refuse(IGNORED[name]())


@pytest.mark.parametrize("name", READ_RIGHT)
def test_what_is_read_right_is_let_through(name: str) -> None:
    model: Any = READ_RIGHT[name]()
    for misreading in MISREADINGS:
        misreading.refuse(model)


def test_the_importer_has_to_act_on_a_refusal_that_a_worker_wrote_down() -> None:
    told = {"outcome": "compile-error", "kind": "MisreadOperator", "message": "m", "hint": "h", "evidence": ""}
    facts = Facts()
    facts.failure = revived(told)
    decision = decide(facts)
    assert (decision.outcome, decision.owner) == (Outcome.COMPILE_ERROR, Owner.IMPORTER)
    assert type(revived({**told, "kind": ""})) is CompileFailure
