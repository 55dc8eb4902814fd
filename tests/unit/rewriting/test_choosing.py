"""Which stripes the search proposes, and what they are expected to cost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from random_cnns import Network
from striped_files import graph_of, three_convolutions

from modelplan.formats import load_model
from modelplan.model import bounds
from modelplan.ops.op_facts import Terms
from modelplan.rewriting.striped_tflite import candidates, placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.candidates import Space
from modelplan.rewriting.striped_tflite.estimating import Prices
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded, with_dilations
from modelplan.rewriting.striped_tflite.rungs import Goal, ModelOnTarget
from modelplan.rewriting.striped_tflite.stripe_search import StripeSearch
from modelplan.rewriting.stripes.ladder import RewriteGoal, climb_rungs
from modelplan.rewriting.stripes.search_effort import TfliteEffort
from modelplan.rewriting.stripes.stretches import LoopedStripes, RecomputedHalo, even_cuts

EFFORT = TfliteEffort()
PRICES = Prices(
    lambda kind, channels, tensors: len(kind) + channels + tensors,
    lambda graph, op: float(graph.tensors[graph.ops[op].outputs[0]].nbytes),
    lambda kind: Terms(len(kind), copy=1.0),
    10.0,
)


def padded_by_an_operator(folder: Path, effort: TfliteEffort) -> Space:
    """A sum of a large map, a PAD of height and width, and a pool."""
    net = Network(np.random.default_rng(3))
    x = net.tensor((1, 24, 24, 4))
    deep = net.add(x, x)
    pads = net.tensor((4, 2), 2, None, np.array([[0, 0], [1, 1], [1, 1], [0, 0]], dtype=np.int32).tobytes())
    y = net.operator("PAD", [deep, pads], net.tensor((1, 26, 26, 4)))
    pooled = net.operator("MAX_POOL_2D", [y], net.tensor((1, 13, 13, 4)), (1, 4, 4, 4, 4, 1), (1, 2, 2, 2, 2, 0))
    graph = graph_of(net.file(x, pooled), folder)
    return Space(graph, (0, 1, 2), placing.no_overlaps, PRICES, effort)


def test_working_buffers_are_those_of_the_program_whatever_was_sized_before(models: Path) -> None:
    """Pointwise convolutions that gather ask CMSIS-NN for other buffers than those of the same shapes that do not."""
    path = models / "mobilenet_v2_like.tflite"
    graph = load_model(path)
    model = ModelOnTarget(path.read_bytes(), graph, path.name, Goal(kernels="cmsis-dsp"))
    order = tuple(range(len(graph.ops)))
    plain = Folded(graph, order)
    gathering = with_dilations(plain, model.runtime)
    first, *others = (
        len(model.problem_of(striped_program(whole.graph, order, ()), model.overlaps))
        for whole in (plain, gathering, plain)
    )
    assert others[0] > first == others[1]


def test_stretches_that_no_loop_suits_are_offered_in_stripes(tmp_path: Path) -> None:
    space = padded_by_an_operator(tmp_path, TfliteEffort(few_ops=0))  # so that loops are among the candidates
    ceiling = 2 * max(space.peaks)
    ranges = candidates.promising_ranges(space, ceiling, 0)
    found = [candidate for run in ranges for candidate in candidates.striped_candidates(space, *run, ceiling)]
    assert found
    assert not any(isinstance(c.stretch, LoopedStripes) for c in found)


@pytest.mark.parametrize("stripes", [4, 8, 16])
def test_rows_of_a_plane_that_were_read_make_room_for_what_a_loop_makes(stripes: int, tmp_path: Path) -> None:
    """An image whose channels stand one behind the other, as exporters write it, costs less and less in a loop."""
    net = Network(np.random.default_rng(1))
    image = net.tensor((1, 3, 64, 64))
    x = net.window(net.turned(image), "CONV_2D", 8, (3, 2))
    graph = graph_of(net.file(image, net.window(x, "DEPTHWISE_CONV_2D", 0, (3, 2))), tmp_path)
    stretch = LoopedStripes(0, 2, 1, even_cuts(16, stripes))
    price = candidates.priced(Space(graph, (0, 1, 2), placing.no_overlaps, PRICES, EFFORT), stretch)
    program = striped_program(graph, (0, 1, 2), (stretch,))
    load = bounds.load_bound(placing.problem_of(program, placing.no_overlaps, 16))
    assert price is not None
    assert load <= price.peak < 1.06 * load


def test_rows_are_recomputed_in_stretches_of_few_windows_however_long(tmp_path: Path) -> None:
    """Operators that go row by row add no rows to compute again."""
    net = Network(np.random.default_rng(3))
    x = net.tensor((1, 24, 24, 4))
    deep = net.add(x, x)
    for _ in range(4):
        deep = net.add(deep, deep)
    pooled = net.operator("MAX_POOL_2D", [deep], net.tensor((1, 11, 11, 4)), (1, 4, 4, 4, 4, 1), (1, 2, 2, 3, 3, 0))
    space = Space(graph_of(net.file(x, pooled), tmp_path), tuple(range(6)), placing.no_overlaps, PRICES, EFFORT)
    found = candidates.striped_candidates(space, 0, 5, 2 * max(space.peaks))
    assert any(isinstance(c.stretch, RecomputedHalo) and c.stretch.first == 0 for c in found)


def test_the_neighbours_of_a_plan_are_in_order_apart_and_of_one_stretch_more_or_fewer(tmp_path: Path) -> None:
    data = three_convolutions()
    graph = graph_of(data, tmp_path)
    search = StripeSearch(ModelOnTarget(data, graph, "three", Goal()), Folded(graph, (0, 1, 2)), (0, 1, 2))
    last = RecomputedHalo(2, 2, 1, even_cuts(12, 3))
    search.candidates = [
        candidates.Candidate(stretch=stretch) for stretch in (RecomputedHalo(0, 1, 1, even_cuts(12, 2)), last)
    ]
    found = list(search._neighbours((last,)))
    assert {len(stretches) for stretches in found} == {0, 1, 2}
    assert all(a.last < b.first for stretches in found for a, b in pairwise(stretches))
    assert (search.candidates[0].stretch, last) in found


def test_rungs_are_told_as_they_are_reached_up_to_the_first_that_fits() -> None:
    lines: list[str] = []
    rungs = [SimpleNamespace(name=name, need=need) for name, need in (("as is", 1200), ("order", 1300), ("rows", 90))]
    tried: list[SimpleNamespace] = []
    goal = RewriteGoal(budget=100)
    climb_rungs(
        iter((*rungs, rungs[0])), tried, goal, lambda rung: rung.need <= 100, lambda rung: rung.need, lines.append
    )
    assert tried == rungs
    assert lines == ["as is: 1,200 bytes\n", "order: 1,300 bytes, 100 more\n", "rows: 90 bytes, 1,110 less\n"]
