"""Two models compared: nothing differs in one and the same, and of two versions the operator that changed is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import graphs
import onnx
import pytest
from tflite_models import BOOL, FLOAT32, OpRow, Sub, TensorRow, model, nested
from versions import NETWORK, Layer, Layers, renamed_onnx, renamed_tflite, written

from modelplan.answers.model_difference import Bytes, Change, Difference
from modelplan.formats import load_model, read_contents
from modelplan.formats.model_contents import known_contents
from modelplan.model import Graph, Kind, Op, Tensor
from modelplan.model.model_file import Target
from modelplan.planning import pipeline
from modelplan.planning.matching.labelling import Structure
from modelplan.planning.matching.matching import common, matched_ops, rising
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.alternatives import load_file
from modelplan.questions.differences.side_difference import difference
from modelplan.questions.differences.sides import Side, planned_side, side_of
from modelplan.runtimes import RUNTIMES, runtime, with_kernels

ROOT = Path(__file__).resolve().parents[3]
OPS = {name: number for number, name in enumerate(NETWORK)}


def side(path: Path, kernels: str = "", abi: str = "32", dims: tuple[str, ...] = ()) -> Side:
    file = load_file(str(path), dims)
    row = runtime(None, file.graph.format)
    return side_of(file, Target(with_kernels(row, kernels) if kernels else row, abi))


def versions(tmp_path: Path, new: bytes, old: bytes | None = None) -> tuple[Side, Side]:
    paths = tmp_path / "old.tflite", tmp_path / "new.tflite"
    for path, content in zip(paths, (old or written(NETWORK), new), strict=True):
        path.write_bytes(content)
    return side(paths[0]), side(paths[1])


def differing(found: Difference) -> dict[str, Change]:
    """What is said to differ by itself."""
    return {one.label: one.change for one in found.changes if one.change is not Change.FOLLOWS}


def check_sums(found: Difference) -> None:
    """The figures of the peak and of the arena add up."""
    assert sum(part.bytes.delta for part in found.peak_parts) == found.peaks[1].nbytes - found.peaks[0].nbytes
    if not any(found.refusals):
        for at, total in enumerate((found.arena.before, found.arena.after)):
            parts = [(part.bytes.before, part.bytes.after)[at] or 0 for part in found.parts]
            assert sum(parts) == total


def mirrored(found: Difference) -> list[tuple[object, ...]]:
    """What the difference of the swapped sides should say."""
    other = {Change.ADDED: Change.GONE, Change.GONE: Change.ADDED}
    return sorted(
        (other.get(one.change, one.change), one.after, one.before, swapped(one.in_peak), swapped(one.outputs))
        for one in found.changes
    )


def swapped(figure: Bytes) -> tuple[int, int]:
    return (-1 if figure.after is None else figure.after, -1 if figure.before is None else figure.before)


def told(found: Difference) -> list[tuple[object, ...]]:
    return sorted(
        (one.change, one.before, one.after, swapped(Bytes(one.in_peak.after, one.in_peak.before)),
         swapped(Bytes(one.outputs.after, one.outputs.before)))
        for one in found.changes
    )  # fmt: skip


# -- nothing differs ---------------------------------------------------------------------------------------------------

_DIMS = {"bert": ("batch=1", "sequence=16"), "decoder": ("batch=1", "sequence=4", "past_sequence=8")}


def named_models() -> list[str]:
    return sorted(path.name for suffix in ("tflite", "onnx") for path in (ROOT / "models").glob(f"*.{suffix}"))


@pytest.mark.parametrize("name", named_models())
def test_a_model_does_not_differ_from_itself_whatever_its_names(name: str, tmp_path: Path) -> None:
    source, other = ROOT / "models" / name, tmp_path / f"other{Path(name).suffix}"
    if name.endswith(".tflite"):
        other.write_bytes(renamed_tflite(source.read_bytes()))
    else:
        onnx.save(renamed_onnx(onnx.load(source)), other)
    dims = _DIMS.get(name.partition("_")[0], ())
    one, two = side(source, dims=dims), side(other, dims=dims)
    assert one.graph.tensors != two.graph.tensors
    for found in (difference(one, one), difference(one, two)):
        assert found.empty, [change.line for change in found.changes]
        assert found.peaks[0].nbytes == found.peaks[1].nbytes
        assert not any(part.bytes.delta for part in found.peak_parts)


@pytest.mark.slow
def test_no_file_of_the_corpus_differs_from_itself_whatever_its_names(corpus: Path, tmp_path: Path) -> None:
    count = 0
    for path in sorted((corpus / "tflite").rglob("*.tflite")):
        other = tmp_path / "other.tflite"
        other.write_bytes(renamed_tflite(path.read_bytes()))
        found = difference(side(path), side(other))
        assert found.empty, (path.name, [change.line for change in found.changes])
        count += 1
    assert count > 20


# -- versions ----------------------------------------------------------------------------------------------------------


def changed(name: str, **figures: Any) -> Layers:
    return {**NETWORK, name: replace(NETWORK[name], **figures)}


def inserted(after: str, name: str, layer: Layer, reader: str) -> Layers:
    """The network with a layer between two others."""
    found: dict[str, Layer] = {}
    for key, value in NETWORK.items():
        found[key] = value
        if key == after:
            found[name] = layer
    reads = tuple(name if source == after else source for source in found[reader].reads)
    return {**found, reader: replace(found[reader], reads=reads)}


def without(name: str) -> Layers:
    kept = {key: layer for key, layer in NETWORK.items() if key != name}
    before = NETWORK[name].reads[0]
    return {
        key: replace(layer, reads=tuple(before if source == name else source for source in layer.reads))
        for key, layer in kept.items()
    }


def at(layers: Layers, *names: str) -> set[str]:
    """How messages call these layers."""
    order = list(layers)
    return {f"op {order.index(name)} {layers[name].kind}" for name in names}


MUTATIONS: dict[str, tuple[Layers, tuple[str, ...], Change]] = {
    "stride": (changed("stem", stride=1), ("stem",), Change.CHANGED),
    "filters of two": (
        changed("pw1", filters=32, seed=9) | {"pw2": replace(NETWORK["pw2"], filters=32)},
        ("pw1", "pw2"),
        Change.CHANGED,
    ),
    "filters of one": (changed("pw3", filters=32), ("pw3",), Change.CHANGED),
    "units": (changed("fc", filters=12), ("fc",), Change.CHANGED),
    "kernel size": (changed("stem", size=5), ("stem",), Change.CHANGED),
    "type of a result": (changed("soft", dtype="int16"), ("soft",), Change.CHANGED),
    "padding": (changed("dw1", padding="VALID"), ("dw1",), Change.CHANGED),
    "activation": (changed("stem", activation=1), ("stem",), Change.CHANGED),
    "window": (changed("pool", size=4), ("pool",), Change.CHANGED),
    "weights": (changed("pw2", seed=99), ("pw2",), Change.VALUES),
    "weights of a depthwise one": (changed("dw2", seed=99), ("dw2",), Change.VALUES),
    "quantisation": (changed("pw1", scale=0.25), ("pw1",), Change.VALUES),
    "another kind": (changed("pool", kind="AVERAGE_POOL_2D"), ("pool",), Change.CHANGED),
    "another kind between others": (changed("act", kind="RELU6"), ("act",), Change.CHANGED),
    "added": (inserted("pw3", "extra", Layer("RELU", ("pw3",)), "flat"), ("extra",), Change.ADDED),
    "added with weights": (
        inserted("stem", "extra", Layer("CONV_2D", ("stem",), 8, size=1, seed=50), "dw1"), ("extra",), Change.ADDED
    ),
    "reads from elsewhere": (changed("sum", reads=("dw2", "pw2")), ("sum",), Change.CHANGED),
    "operands swapped": (changed("sum", reads=("pw2", "pw1")), ("sum",), Change.CHANGED),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_exactly_the_operator_that_changed_is_named(name: str, tmp_path: Path) -> None:
    layers, names, change = MUTATIONS[name]
    old, new = versions(tmp_path, written(layers))
    found = difference(old, new)
    assert not found.empty
    assert differing(found) == dict.fromkeys(at(layers, *names), change)
    check_sums(found)
    back = difference(new, old)
    assert mirrored(found) == told(back)
    check_sums(back)


def test_an_operator_that_is_gone_is_named(tmp_path: Path) -> None:
    for name in ("act", "dw1", "sum", "pool"):
        found = difference(*versions(tmp_path, written(without(name))))
        assert differing(found) == {f"op {OPS[name]} {NETWORK[name].kind}": Change.GONE}


def test_a_branch_that_was_added_is_named(tmp_path: Path) -> None:
    layers = NETWORK.copy()
    order = ["stem", "dw1", "pw1", "dw2", "pw2", "sum", "act", "side1", "side2", "join", "pool"]
    layers |= {
        "side1": Layer("CONV_2D", ("act",), 4, size=1, seed=70),
        "side2": Layer("DEPTHWISE_CONV_2D", ("side1",), seed=71),
        "join": Layer("CONCATENATION", ("act", "side2")),
        "pool": replace(NETWORK["pool"], reads=("join",)),
    }
    layers = {name: layers[name] for name in (*order, "pw3", "flat", "fc", "soft")}
    found = difference(*versions(tmp_path, written(layers)))
    assert differing(found) == dict.fromkeys(at(layers, "side1", "side2", "join"), Change.ADDED)
    # The joined map has more channels, so the weights behind it have too.
    assert {one.label for one in found.of(Change.FOLLOWS)} == at(layers, "pool", "pw3")


def test_two_operators_that_changed_places_are_named_and_what_reads_them_is_not(tmp_path: Path) -> None:
    layers = NETWORK.copy()
    layers["pool"], layers["act"] = replace(NETWORK["pool"], reads=("sum",)), replace(NETWORK["act"], reads=("pool",))
    layers["pw3"] = replace(NETWORK["pw3"], reads=("act",))
    order = ["stem", "dw1", "pw1", "dw2", "pw2", "sum", "pool", "act", "pw3", "flat", "fc", "soft"]
    found = difference(*versions(tmp_path, written({name: layers[name] for name in order})))
    named = differing(found)
    assert {label.split()[2] for label in named} <= {"RELU", "MAX_POOL_2D"}
    assert "op 8 CONV_2D" not in named


@pytest.mark.parametrize(
    ("shape", "word"), [((2, 16, 16, 3), "batch"), ((1, 32, 32, 3), "size"), ((1, 16, 16, 4), "channels")]
)
def test_another_input_is_named_and_all_else_follows(shape: tuple[int, ...], word: str, tmp_path: Path) -> None:
    found = difference(*versions(tmp_path, written(NETWORK, shape)))
    assert differing(found) == {"input 0 't0'": Change.CHANGED}
    assert found.of(Change.FOLLOWS)
    check_sums(found)


def test_kernels_name_the_operators_that_ask_for_other_scratch(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(written(NETWORK))
    found = difference(side(path), side(path, "cmsis-mve"))
    assert [(s.name, s.before, s.after) for s in found.settings] == [("kernels", "reference", "cmsis-mve")]
    wanted = {one.label for one in found.changes if one.scratch.delta}
    plans = [
        pipeline.runtime_plan(load_model(path), with_kernels(RUNTIMES["tflm"], k)) for k in ("reference", "cmsis-mve")
    ]
    asked = [[sum(op.scratch) for op in plan.graph.ops] for plan in plans]
    assert wanted == {plans[0].graph.label(i) for i in range(len(OPS)) if asked[0][i] != asked[1][i]}
    assert wanted
    assert {one.label for one in found.changes} >= wanted
    check_sums(found)


def test_a_line_says_bytes_shapes_and_types(tmp_path: Path) -> None:
    (one,) = difference(*versions(tmp_path, written(changed("pw3", filters=32)))).of(Change.CHANGED)
    assert one.line == (
        "op 8 CONV_2D: weights 24x1x1x16 -> 32x1x1x16 int8; bias 24 -> 32 int32;"
        " output 384 -> 512 bytes (1x4x4x24 -> 1x4x4x32 int8); kept 308 -> 372 bytes"
    )
    (one,) = difference(*versions(tmp_path, written(changed("stem", stride=1)))).of(Change.CHANGED)
    assert one.details[:2] == ("stride_h 2 -> 1", "stride_w 2 -> 1")


def test_every_figure_of_an_operator_is_that_of_the_plan(tmp_path: Path) -> None:
    old, new = versions(tmp_path, written(changed("stem", stride=1)))
    found = difference(old, new)
    assert found.arena == Bytes(old.needed.arena, new.needed.arena)
    for one in found.changes:
        for at_side, i, figure in ((old, one.before, 0), (new, one.after, 1)):
            op = at_side.plan.graph.ops[i]
            assert pick(one.outputs, figure) == sum(at_side.plan.graph.tensors[t].nbytes for t in op.writes)
            assert pick(one.kept, figure) == at_side.kept[i]
            assert pick(one.live, figure) == at_side.live[at_side.steps[i]]
    assert sum(old.kept) < sum(part.nbytes for part in old.needed.parts if part.name.startswith("tail"))


def pick(figure: Bytes, which: int) -> int | None:
    return figure.after if which else figure.before


def branches(kind: str, more: bool) -> bytes:
    """An IF whose first body is one operator of a kind; its second has one operator more where asked to."""

    def t(name: str) -> TensorRow:
        return name, FLOAT32, (12,), None

    first = Sub([t("i"), t("o")], [(kind, (0, 0), (1,), ())], (0,), (1,))
    ops: list[OpRow] = [("ADD", (0, 0), (1,), ()), ("ADD", (1, 0), (2,), ())]
    if more:
        ops.append(("MUL", (2, 2), (3,), ()))
    second = Sub([t("i"), t("s"), t("o"), t("p")][: len(ops) + 1], ops, (0,), (len(ops),))
    main = Sub([("flag", BOOL, (1,), None), t("x"), t("y")], [("IF", (0, 1), (2,), (1, 2))], (0, 1), (2,))
    return model(main, first, second)


def test_what_differs_in_bodies_is_told_by_the_operator_that_runs_them(tmp_path: Path) -> None:
    old, new = versions(tmp_path, branches("ADD", more=True), branches("MUL", more=False))
    (one,) = difference(old, new).changes
    assert one.details[:2] == ("in body 0: op 0 ADD: MUL -> ADD", "in body 1: op 2 MUL added")
    (one,) = difference(new, old).changes
    assert one.details[:2] == ("in body 0: op 0 MUL: ADD -> MUL", "in body 1: op 2 MUL gone")


@pytest.mark.slow
def test_bodies_that_many_operators_run_are_compared_once(tmp_path: Path) -> None:
    old, new = versions(tmp_path, nested(19), nested(18))
    assert difference(old, old).empty
    (one,) = difference(old, new).changes
    assert one.details[0] == "in body 0: op 1 IF: its bodies differ"


def test_operators_in_another_order_are_counted(tmp_path: Path) -> None:
    stem, tail = Layer("CONV_2D", ("in",), 8, seed=1), Layer("ADD", ("a2", "b2"))
    a1, a2 = Layer("CONV_2D", ("stem",), 8, seed=2), Layer("CONV_2D", ("a1",), 8, seed=3)
    b1, b2 = Layer("CONV_2D", ("stem",), 8, seed=4), Layer("RELU", ("b1",))
    layers = {"stem": stem, "a1": a1, "a2": a2, "b1": b1, "b2": b2, "sum": tail}
    order = ["stem", "b1", "a1", "b2", "a2", "sum"]
    sides = versions(tmp_path, written({name: layers[name] for name in order}), written(layers))
    found = difference(*sides)
    assert not found.changes
    assert found.moved == 2
    assert not found.empty
    assert sum(column.moved for column in found.columns) == 4
    assert [(column.old, column.new) for column in found.columns if not column.moved][-1] == (5, 5)


def test_two_formats_are_refused() -> None:
    with pytest.raises(RequestError, match="modelplan check"):
        difference(side(ROOT / "models" / "resnet8.tflite"), side(ROOT / "models" / "resnet8.onnx"))


# -- matching ----------------------------------------------------------------------------------------------------------


def structure(graph: Graph) -> Structure:
    return Structure(graph, known_contents(graph))


def chain(count: int, kinds: Callable[[int], str]) -> Graph:
    tensors = tuple(Tensor(f"t{i}", (4,), "int8") for i in range(count + 1))
    ops = tuple(Op("", kinds(i), (i,), (i + 1,)) for i in range(count))
    return Graph("chain", "tflite", tensors, ops, (0,), (count,))


@pytest.mark.slow
def test_long_runs_of_equal_operators_are_matched() -> None:
    long, short = (structure(chain(count, lambda i: "RELU")) for count in (3000, 2990))
    found = matched_ops(long, short)
    assert sum(j < 0 for j in found) == 10
    assert [j for j in found if j >= 0] == list(range(2990))
    back = matched_ops(short, long)
    assert [(i, j) for j, i in enumerate(back)] == [(i, j) for i, j in enumerate(found) if j >= 0]


def test_a_drawn_graph_is_matched_along_its_wires() -> None:
    old = graphs.fork()
    ops = (*old.ops[:3], old.ops[4], replace(old.ops[3], kind="RELU"))
    new = replace(old, ops=ops)
    assert matched_ops(structure(old), structure(new)) == (0, 1, 2, 4, 3)


def test_rising_runs_and_common_sequences() -> None:
    assert rising([]) == []
    assert [[5, 1, 2, 9, 3][i] for i in rising([5, 1, 2, 9, 3])] == [1, 2, 3]
    assert common([1, 2, 3], [1, 3]) == [(0, 0), (2, 1)]
    assert common([1, 1, 2], [2, 1, 2]) == [(1, 1), (2, 2)]
    for seed in range(200):
        draw = random.Random(seed)
        ones, others = ([draw.randrange(3) for _ in range(draw.randrange(9))] for _ in range(2))
        found = common(ones, others)
        assert all(ones[a] == others[b] for a, b in found)
        assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))


def test_contents_tell_values_quantisation_and_options(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(written(NETWORK))
    graph = load_model(path)
    found = read_contents(path.read_bytes(), str(path), graph)
    assert ("stride_h", 2) in found.options[0]
    assert ("fused_activation_function", "RELU6") in found.options[0]
    assert ("padding", "SAME") in found.options[0]
    scales = found.quantisation[graph.ops[0].outputs[0]]
    assert scales is not None
    assert round(scales[0][0], 6) == 0.05
    assert scales[1:] == ((3,), 0)
    for value, tensor in zip(found.values, graph.tensors, strict=True):
        assert bool(value) == (tensor.kind is Kind.CONSTANT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["network.tflite", "resnet8.onnx"])
def test_any_bytes_give_contents_or_a_fault_of_the_file(name: str, tmp_path: Path) -> None:
    content = written(NETWORK) if name.endswith(".tflite") else (ROOT / "models" / name).read_bytes()
    path, draw, seen = tmp_path / name, random.Random(7), set[str]()
    path.write_bytes(content)
    graph = load_model(path)
    for _ in range(600):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(8, len(damaged) - 4)
            damaged[place : place + 4] = draw.choice([b"\xff\xff\xff\x7f", b"\0\0\0\0", draw.randbytes(4)])
        try:
            read_contents(bytes(damaged), str(path), graph)
            seen.add("read")
        except ModelError as problem:
            seen.add(str(problem).partition(": ")[0])
    assert seen == {"read", str(path)}


def test_a_plan_is_a_side_too() -> None:
    graph = load_model(ROOT / "models" / "mobilenet_v2_like.onnx")
    old, new = (planned_side(pipeline.plan(graph, pipeline.Options(alias=alias)), alias) for alias in ("none", "safe"))
    found = difference(old, new)
    assert [setting.name for setting in found.settings] == ["plan"]
    assert found.arena.delta < 0
    assert not found.changes
    check_sums(found)
