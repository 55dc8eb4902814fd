"""Random networks computed in stripes at random legal cuts give the same bytes on TFLM."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from random_cnns import random_cnn

from modelplan import runtimes
from modelplan.loaders import load_model
from modelplan.rewriting.plan_metadata import write_plan
from modelplan.rewriting.striped_tflite import write_striped
from modelplan.rewriting.stripes import placing
from modelplan.rewriting.stripes.building import built
from modelplan.rewriting.stripes.layers import layer_of
from modelplan.rewriting.stripes.program import Program
from modelplan.rewriting.stripes.regions import Region
from modelplan.rewriting.stripes.windows import IllegalStripeError
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm
from modelplan.types import Graph
from modelplan.verifier.rewrites.proving import prove_rewrite

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


def random_region(graph: Graph, rng: random.Random) -> Region | None:
    """Some operators in a row with random cuts and ways; None where none of them can be split."""
    first = rng.randrange(len(graph.ops))
    last = rng.randrange(first, len(graph.ops))
    shape = graph.tensors[graph.ops[last].outputs[0]].shape
    axis = 2 if shape[1] == 1 else 1
    if shape[axis] < 2 or any(isinstance(layer_of(graph, i, axis), str) for i in range(first, last + 1)):
        return None
    inner = sorted(rng.sample(range(1, shape[axis]), rng.randrange(1, min(6, shape[axis]))))
    pad = frozenset(i for i in range(first, last + 1) if rng.random() < 0.5)
    carry = rng.random() < 0.5
    if rng.random() < 0.25:
        rows = rng.randrange(1, shape[axis])
        return Region(first, last, axis, (*range(0, shape[axis], rows), shape[axis]), carry=False, loop=True)
    early = carry and rng.random() < 0.4
    height = graph.tensors[graph.ops[first].outputs[0]].shape[axis]
    if carry and height > 1 and rng.random() < 0.4:
        rows = rng.randrange(1, max(2, height // 2))
        cuts = (*range(0, height, rows), height)
        return Region(first, last, axis, cuts, pad=pad, paced=True, early=early)
    lazy, backward = (not carry and rng.random() < 0.5 for _ in range(2))
    return Region(first, last, axis, (0, *inner, shape[axis]), carry, pad, lazy, False, backward, early=early)


def rewritten(data: bytes, name: str, program: Program, leads: placing.Leads) -> tuple[bytes, bytes, int]:
    """The file of a program with its plan, and the head that is predicted."""
    packing = placing.pack(placing.posed(program, leads, planner.ALIGNMENT), 200)
    placing.replay_steps(program, packing, leads)
    model, values = write_striped(data, program)
    file = read_tflite(model, name)
    place = placing.value_addresses(program, packing)
    planned = write_plan(file, [place.get(value, planner.ONLINE) for value in values])
    return model, planned, planner.predicted_head(read_tflite(planned, name))


def legal_program(graph: Graph, seed: int) -> Program | None:
    """A program with a random region in stripes."""
    rng = random.Random(seed)
    for _ in range(60):
        region = random_region(graph, rng)
        if region is None:
            continue
        try:
            return built(graph, range(len(graph.ops)), [region])
        except IllegalStripeError:
            continue
    return None


@runtime
@pytest.mark.parametrize("seed", range(12))
def test_random_stripes_are_equal_on_tflm(tmp_path: Path, seed: int) -> None:
    data = random_cnn(seed)
    path = tmp_path / "random.tflite"
    path.write_bytes(data)
    graph = load_model(str(path))
    program = legal_program(graph, seed)
    if program is None:
        pytest.skip("no operator of this network can be split")
    leads = placing.kernel_leads(runtimes.runtime("tflm", "tflite"))
    plain, planned, head = rewritten(data, "random", program, leads)
    own, ours = run_tflm(data, rounds=1), run_tflm(planned, rounds=1)
    assert ours.outputs == own.outputs
    assert planner.padded(ours.head) == head
    if not any(step.loop for step in program.steps):
        assert run_tflm(plain, rounds=1).outputs == own.outputs


@pytest.mark.parametrize("seed", range(40))
def test_random_stripes_are_proved_without_a_kernel(tmp_path: Path, seed: int) -> None:
    data = random_cnn(seed)
    path = tmp_path / "random.tflite"
    path.write_bytes(data)
    program = legal_program(load_model(str(path)), seed)
    if program is None:
        pytest.skip("no operator of this network can be split")
    leads = placing.kernel_leads(runtimes.runtime("tflm", "tflite"))
    _, planned, _ = rewritten(data, "random", program, leads)
    assert [verdict.outcome for verdict in prove_rewrite(data, planned)] == ["ok", "ok"]
