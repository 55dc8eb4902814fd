"""Sound plans pass, whatever made them; a random shift of a buffer passes only where it does no harm."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from shares import share

from modelplan import BrokenPlanError, Graph, Kind, Op, Options, Placement, Plan, Tensor, check, plan
from modelplan.checking.verifier.proof import prove
from modelplan.checking.verifier.replay import replay
from modelplan.checking.verifier.static import check_static
from modelplan.checking.verifier.subject import plan_subject
from modelplan.checking.verifier.values import replay_golden
from modelplan.planning.allocators import ALLOCATORS

PLANS = share(1000)
SHAPES = [(16,), (4, 4), (1, 2, 8), (3,), (40,), (0,)]
KINDS = ["CONV_2D", "ADD", "RESHAPE", "RELU", "TRANSPOSE", "CONCATENATION", "SPLIT", "MUL", "SOFTMAX", "GATHER"]

UNARY = {"RELU", "SOFTMAX", "TRANSPOSE"}


def random_graph(rng: random.Random) -> Graph:
    """Up to 14 operators over tensors of a few shapes, some constant, some state, some read often or never."""
    tensors = [Tensor("in", (16,), "int8"), Tensor("w", (99,), "int8", Kind.CONSTANT)]
    if rng.random() < 0.3:
        tensors.append(Tensor("state", (16,), "int8", Kind.STATE))
    ops: list[Op] = []
    for i in range(rng.randint(1, 14)):
        kind = rng.choice(KINDS)
        reads = tuple(rng.choices(range(len(tensors)), k=1 if kind in UNARY else rng.randint(1, 3)))
        shape = tensors[reads[0]].shape if rng.random() < 0.6 else rng.choice(SHAPES)
        writes = range(len(tensors), len(tensors) + rng.choice([1, 1, 1, 2]))
        tensors += [Tensor(f"t{i}.{y}", shape, rng.choice(["int8", "int16"])) for y in writes]
        ops.append(Op("", kind, reads, tuple(writes), (("axis", 0),)))
    written = [t for op in ops for t in op.outputs]
    outputs = rng.sample(written, rng.randint(1, min(3, len(written))))
    return Graph("random", "tflite", tuple(tensors), tuple(ops), (0,), tuple(outputs))


def random_plan(seed: int) -> Plan:
    rng = random.Random(seed)
    allocator = rng.choice(["naive", "tflm-greedy", "tflite-greedy-by-size"])
    assert allocator in ALLOCATORS
    runtime = rng.choice(["generic", "tflm"])
    options = Options(
        runtime=runtime, schedule="file", alias=rng.choice(["none", "views", "safe", "max"]), allocator=allocator
    )
    return plan(random_graph(rng), options)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_none_of_a_thousand_sound_plans_is_rejected(block: int) -> None:
    for seed in range(block * PLANS // 10, (block + 1) * PLANS // 10):
        one = random_plan(seed)
        prove(plan_subject(one))
        if one.alias == "max":
            continue  # parts of joins and splits would have to be cut out of each other's values
        rng = np.random.default_rng(seed)
        values = {t: rng.integers(0, 256, x.nbytes, dtype=np.uint8) for t, x in enumerate(one.graph.tensors)}
        for merge in (m for m in one.merges if m.rule.startswith("view")):
            values[merge.tensor] = values[merge.into]
        replay_golden(plan_subject(one), values)


@pytest.mark.slow
def test_a_shifted_buffer_is_rejected_when_the_referee_objects() -> None:
    """Without aliases the referee's question (may these two share bytes?) and the verifier's are the same."""
    agreed = 0
    for seed in range(share(400)):
        rng = random.Random(seed)
        one = plan(random_graph(rng), Options(runtime="tflm", schedule="file", alias="none", allocator="tflm-greedy"))
        if not len(one.problem):
            continue
        offsets = one.placement.offsets.copy()
        offsets[rng.randrange(len(offsets))] = 16 * rng.randint(0, 6)
        other = replace(one, placement=Placement(offsets))
        subject = plan_subject(other)
        harmless = _passes(lambda: check_static(subject.program, subject.layout))  # noqa: B023
        if _passes(lambda: check(other.problem, other.placement)):  # noqa: B023
            assert harmless
        agreed += not harmless
        if harmless:
            replay(subject.program, subject.layout)
    assert agreed > share(400) // 8


def _passes(run: object) -> bool:
    try:
        run()  # type: ignore[operator]
    except BrokenPlanError:
        return False
    return True
