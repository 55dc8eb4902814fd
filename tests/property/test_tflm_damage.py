"""Any bytes at all: a damaged .tflite is read, planned and verified, or refused with an error of our own."""

from __future__ import annotations

import random

import pytest
from shares import share
from tflite_models import branching, looping

from modelplan.checking.verifier.proof import prove
from modelplan.checking.verifier.subject import offline_subject
from modelplan.primitives.errors import ModelPlanError
from modelplan.rewriting.packing import Question, answer, check_plannable, request_problem
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.planner import requests


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A few bytes or words replaced, or the end cut off."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 2, 8])):
        at = rng.randrange(len(out))
        words = [bytes([rng.randrange(256)]), b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"]
        word = rng.choice(words)
        out[at : at + len(word)] = word
    return bytes(out if rng.random() < 0.9 else out[: rng.randrange(len(out))])


@pytest.mark.parametrize("whole", [branching(), looping()], ids=["if", "while"])
def test_damage_ends_in_a_result_or_an_error_of_ours(whole: bytes) -> None:
    rng = random.Random(5)
    outcomes = [outcome(damaged(whole, rng)) for _ in range(share(400))]
    assert outcomes.count("planned") > len(outcomes) // 20
    assert outcomes.count("refused") > len(outcomes) // 20


def outcome(data: bytes) -> str:
    try:
        model = read_tflite(data, "damaged")
        arena(model)
        everything(model)
    except ModelPlanError:
        return "refused"
    return "planned"


def everything(model: FileModel) -> None:
    check_plannable(model)
    rows = requests(model)
    asked = Question(model, "reference", rows, (), (), request_problem(model, rows))
    packed = write_plan(model, answer(asked, "tflm-greedy").offsets)
    prove(offline_subject(read_tflite(packed, "packed")))
