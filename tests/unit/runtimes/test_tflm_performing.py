"""What one operator takes from TFLM's arena, apart from models and targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tflm_models import MAKERS, Draw

from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.kernels import LIBRARIES, Call, Operand
from modelplan.runtimes.tflm.kernels.calls import WEIGHTED
from modelplan.runtimes.tflm.performing import Kernels, kernels_of
from modelplan.runtimes.tflm.scratch import call_of, calls_of


def calls(kind: str) -> Iterator[Call]:
    """Operators of a kind in each type, with the values of their constants."""
    for _, make, dtypes in (row for row in MAKERS if row[0] == kind):
        for dtype in dtypes:
            for seed in range(3):
                try:
                    model = read_tflite(make(Draw(seed), dtype), kind)
                except ModelError:
                    continue
                yield from (call_of(model, 0, op) for op in model.subgraphs[0].ops)


def without_values(operand: Operand | None) -> Operand | None:
    return None if operand is None else replace(operand, content=None)


@pytest.mark.parametrize("kind", sorted(WEIGHTED))
def test_no_kernel_looks_at_the_values_of_weights(kind: str) -> None:
    found = list(calls(kind))
    assert any(o is not None and o.content is not None for call in found for o in call.inputs)
    for library in LIBRARIES.values():
        kernels = Kernels(library, later=False)
        for call in found:
            bare = replace(call, inputs=tuple(map(without_values, call.inputs)))
            assert kernels.perform(call) == kernels.perform(bare)


def test_operators_alike_are_one_object_and_performed_once() -> None:
    make, dtype = next((make, dtypes[0]) for kind, make, dtypes in MAKERS if kind == "CONV_2D")
    one, again = (calls_of(read_tflite(make(Draw(1), dtype), name)).distinct for name in ("a", "b"))
    assert all(x is y for x, y in zip(one, again, strict=True))
    kernels = kernels_of("reference", later=False)
    assert kernels.perform(one[0]) is kernels.of(again[0])
