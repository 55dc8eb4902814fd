"""Random networks and one change to each: the difference names that operator and no other, either way round."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import examples
from versions import Layer, Layers, written

from modelplan.answers.model_difference import Change, Difference
from modelplan.formats.model_contents import known_contents
from modelplan.model import Graph, Op, Tensor
from modelplan.model.model_file import Target
from modelplan.planning.matching.labelling import Structure
from modelplan.planning.matching.matching import matched_ops
from modelplan.questions.alternatives import load_file
from modelplan.questions.differences.side_difference import difference
from modelplan.questions.differences.sides import Side, side_of
from modelplan.runtimes import RUNTIMES

_SHAPE = (1, 4, 4, 8)
_TARGET = Target(RUNTIMES["tflm"], "32")
SETTINGS = examples(60)


def network(draw: random.Random, count: int) -> Layers:
    """`count` layers that all make maps of one shape, each reading one or two of those before."""
    layers: Layers = {}
    for number in range(count):
        before = ["in", *layers][-4:]
        kind = draw.choice(["CONV_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "RELU", "ADD"])
        reads = tuple(draw.choice(before) for _ in range(2 if kind == "ADD" else 1))
        filters = 8 if kind == "CONV_2D" else 0
        layers[f"layer{number}"] = Layer(kind, reads, filters, size=draw.choice([1, 3]), seed=number)
    return layers


def side(folder: Path, name: str, layers: Layers) -> Side:
    path = folder / name
    path.write_bytes(written(layers, _SHAPE))
    return side_of(load_file(str(path)), _TARGET)


def named(found: Difference) -> list[tuple[Change, str]]:
    """What differs by itself: what became of it, and its label."""
    return [(one.change, one.label) for one in found.changes if one.change is not Change.FOLLOWS]


def label(layers: Layers, name: str) -> str:
    return f"op {list(layers).index(name)} {layers[name].kind}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("versions")


@pytest.mark.slow
@SETTINGS
@given(seed=st.integers(0, 10**6), count=st.integers(2, 14))
def test_a_change_of_one_layer_names_it(folder: Path, seed: int, count: int) -> None:
    draw = random.Random(seed)
    old = network(draw, count)
    name = draw.choice(list(old))
    weighted = old[name].kind.endswith("CONV_2D")
    changes: list[dict[str, Any]] = [{"scale": 0.2}, {"seed": 1000}, {"activation": 1}]
    change = draw.choice(changes if weighted else changes[:1])
    new = old | {name: replace(old[name], **change)}
    sides = side(folder, "old.tflite", old), side(folder, "new.tflite", new)
    what = Change.CHANGED if "activation" in change else Change.VALUES
    for found in (difference(*sides), difference(*reversed(sides))):
        assert named(found) == [(what, label(old, name))]
        assert found.arena.delta == 0


@pytest.mark.slow
@SETTINGS
@given(seed=st.integers(0, 10**6), count=st.integers(2, 14))
def test_a_layer_that_was_put_between_two_is_named_and_so_is_one_that_is_gone(
    folder: Path, seed: int, count: int
) -> None:
    draw = random.Random(seed)
    old = network(draw, count)
    source = draw.choice([name for layer in old.values() for name in layer.reads])
    reader = draw.choice([name for name, layer in old.items() if source in layer.reads])
    extra = Layer("CONV_2D", (source,), 8, size=1, seed=5000)
    new: Layers = {}
    for name, layer in old.items():
        if name == reader:
            new["extra"] = extra
            reads = tuple("extra" if one == source else one for one in layer.reads)
            new[name] = replace(layer, reads=reads)
        else:
            new[name] = layer
    sides = side(folder, "old.tflite", old), side(folder, "new.tflite", new)
    assert named(difference(*sides)) == [(Change.ADDED, label(new, "extra"))]
    assert named(difference(*reversed(sides))) == [(Change.GONE, label(new, "extra"))]


@SETTINGS
@given(seed=st.integers(0, 10**6), count=st.integers(1, 12))
def test_the_figures_add_up_and_mirror_whatever_the_networks(folder: Path, seed: int, count: int) -> None:
    draw = random.Random(seed)
    sides = [side(folder, f"{n}.tflite", network(draw, draw.randint(1, count))) for n in range(2)]
    found, back = difference(*sides), difference(*reversed(sides))
    assert sum(part.bytes.delta for part in found.peak_parts) == found.peaks[1].nbytes - found.peaks[0].nbytes
    assert sum(part.bytes.delta for part in found.parts) == found.arena.delta == -back.arena.delta
    other = {Change.ADDED: Change.GONE, Change.GONE: Change.ADDED}
    pairs = {(one.change, one.before, one.after, one.effect) for one in found.changes}
    assert pairs == {(other.get(o.change, o.change), o.after, o.before, -o.effect) for o in back.changes}
    places = [(column.old, column.new) for column in found.columns]
    assert sorted(old for old, _ in places if old >= 0) == list(range(len(sides[0].graph.ops)))
    assert sorted(new for _, new in places if new >= 0) == list(range(len(sides[1].graph.ops)))


def drawn(draw: random.Random, count: int) -> Graph:
    """A graph of few kinds, so that many operators look alike."""
    tensors = tuple(Tensor(f"t{i}", (draw.choice([4, 8]),), "int8") for i in range(count + 1))
    ops = []
    for i in range(count):
        reads = draw.sample(range(i + 1), min(draw.randint(1, 2), i + 1))
        ops.append(Op("", draw.choice(["RELU", "ABS", "ADD"]), tuple(reads), (i + 1,)))
    read = {t for op in ops for t in op.inputs}
    return Graph("drawn", "tflite", tensors, tuple(ops), (0,), tuple(t for t in range(1, count + 1) if t not in read))


@SETTINGS
@given(seed=st.integers(0, 10**6), count=st.integers(1, 25))
def test_a_shuffled_graph_is_matched_to_itself(seed: int, count: int) -> None:
    draw = random.Random(seed)
    graph = drawn(draw, count)
    tensors, ops = draw.sample(range(count + 1), count + 1), draw.sample(range(count), count)
    place = {t: at for at, t in enumerate(tensors)}
    shuffled = Graph(
        "other",
        "tflite",
        tuple(replace(graph.tensors[t], name=f"n{t}") for t in tensors),
        tuple(
            replace(
                graph.ops[i],
                inputs=tuple(place[t] for t in graph.ops[i].inputs),
                outputs=tuple(place[t] for t in graph.ops[i].outputs),
            )
            for i in ops
        ),
        tuple(place[t] for t in graph.inputs),
        tuple(place[t] for t in graph.outputs),
    )
    one, other = (Structure(each, known_contents(each)) for each in (graph, shuffled))
    found = matched_ops(one, other)
    assert sorted(found) == list(range(count))
    for i, j in enumerate(found):  # an operator of equal rank may stand for another, with all its wires
        makers = [graph.producers[t] for t in graph.ops[i].inputs]
        others = [shuffled.producers[t] for t in shuffled.ops[j].inputs]
        assert [found[maker] if maker >= 0 else -1 for maker in makers] == others
    assert [found.index(j) for j in range(count)] == list(matched_ops(other, one))
