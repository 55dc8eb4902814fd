"""Overlaps and overwrites under CMSIS-NN's kernels, executed by the programs of a measuring kit."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from overlap_sweep import swept
from single_operators import CASES, planned, single
from tflm_sweep import KIT, kit_folder, start

from modelplan.runtimes.tflm import TFLM

CMSIS_NN = ["cmsis", "cmsis-c", "cmsis-mve"]
#: Operators of CMSIS-NN that mode `safe` lets work in place.
IN_PLACE = {"ADD", "MUL", "MAXIMUM", "MINIMUM", "SOFTMAX"}


def program_of(name: str) -> Path:
    folder = kit_folder()
    if folder is None or not (folder / KIT[name][0]).exists():
        pytest.skip(f"no {KIT[name][0]}; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    return folder / KIT[name][0]


@pytest.mark.parametrize("name", CMSIS_NN)
def test_outputs_at_their_lead_give_the_same_bits(name: str) -> None:
    """A sample of `tests/sweeps/overlap_sweep.py`; one element closer many go wrong."""
    program, closer = program_of(name), Counter[str]()
    for one, same, near in swept(program, KIT[name][2], 160, 4):
        assert same, one
        closer[one.case.kind] += not near
    assert closer["CONV_2D"] > 5
    assert closer["DEPTHWISE_CONV_2D"] > 5
    assert closer["FULLY_CONNECTED"] > 2


@pytest.mark.parametrize("name", CMSIS_NN)
def test_outputs_in_place_give_the_same_bits(name: str) -> None:
    program = program_of(name)
    cases = [case for case in CASES if case[0] in IN_PLACE]
    assert {kind for kind, *_ in cases} == IN_PLACE
    for kind, operand, dtype in cases:
        operands = len(TFLM.sharing.proved[kind].operands)
        content, tensors = single(kind, operands, dtype)
        apart, over = (digests(program, data) for data in (content, planned(content, tensors, operand)))
        assert apart == over, (kind, operand, dtype)


def digests(program: Path, data: bytes) -> object:
    """What two runs on the same numbers give."""
    with tempfile.TemporaryDirectory() as box:
        Path(box, "model").write_bytes(data)
        Path(box, "in").write_bytes(np.random.default_rng(3).standard_normal(256).astype("<f4").tobytes())
        done = start(program, box, "--arena", "65536", "--runs", "2")
    assert done.returncode == 0, done.stdout[-300:]
    return json.loads(done.stdout)["output_sha256"]
