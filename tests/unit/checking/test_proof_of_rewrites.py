"""The proof of rewritten models: right ones pass, and each kind of fault is named without running a kernel."""

from __future__ import annotations

import contextlib
import random
import re
import struct
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mutations import damaged
from random_cnns import random_cnn
from striped_files import (
    Striped,
    change_table,
    constant,
    graph_of,
    largest_distance,
    loop_of,
    number_of,
    padded_convolution,
    set_apart,
    shift_slice,
    step_at,
    striped,
    table_named,
    three_convolutions,
    with_offset,
    with_operand,
)

from modelplan import Graph, load
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.primitives.errors import BrokenPlanError, ModelError, ModelPlanError, RequestError
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded, folded, with_dilations
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.stretches import CarryingLoop, KeptHalo, LoopedStripes, RecomputedHalo
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.file import read_tflite

WAYS: dict[str, dict[str, Any]] = {
    "kept and trimmed": {"strategy": KeptHalo},
    "kept and padded": {"strategy": KeptHalo, "pad": frozenset({0, 1})},
    "recomputed": {"strategy": RecomputedHalo},
    "recomputed and padded": {"strategy": RecomputedHalo, "pad": frozenset({0, 1})},
    "passed on": {"strategy": RecomputedHalo, "trim_late": True},
    "backwards": {"strategy": RecomputedHalo, "backward": True},
    "uneven": {"strategy": KeptHalo, "cuts": (0, 1, 2, 9, 12)},
    "loop": {"strategy": LoopedStripes, "trim_late": True, "cuts": (0, 3, 6, 9, 12)},
    "loop of single rows": {"strategy": LoopedStripes, "trim_late": True, "cuts": tuple(range(13))},
    "loop with cuts": {"strategy": LoopedStripes, "cuts": (0, 3, 6, 9, 12)},
    "loop of tiles": {"strategy": LoopedStripes, "cuts": (0, 6, 12), "columns": 4},
    "carrying loop": {"strategy": CarryingLoop, "cuts": (0, 3, 6, 9, 12)},
    "carrying loop of single rows": {"strategy": CarryingLoop, "cuts": tuple(range(13))},
    "uneven loop": {"strategy": LoopedStripes, "trim_late": True, "cuts": (0, 5, 10, 12)},
}
#: Loops in which rows that are cut off again stand in the way of the result.
GAINING = {"loop", "loop of tiles", "uneven loop"}


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], Striped]:
    return lambda way: striped(three_convolutions(), tmp_path, **WAYS[way])


def refused(made: Striped, fault: Callable[[TfliteProgram], None]) -> str:
    """The sentence with which a faulty rewrite is refused."""
    return refused_file(made.data, made.file(fault))


def refused_file(model: bytes, rewritten: bytes) -> str:
    with pytest.raises(BrokenPlanError) as caught:
        prove_rewrite(model, rewritten)
    return str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_stripes_is_proved(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    rows, memory = prove_rewrite(made.data, made.file())
    assert (rows.outcome, memory.outcome) == ("ok", "ok")
    assert "the file's plan" in memory.details


@pytest.mark.parametrize(("kind", "scale"), [(9, (0.04, 5)), (7, (0.001, 0)), (0, None)], ids=["int8", "int16", "f32"])
@pytest.mark.parametrize("way", ["kept and trimmed", "loop"])
def test_a_quantize_stands_at_the_entry(kind: int, scale: tuple[float, int] | None, way: str, tmp_path: Path) -> None:
    made = striped(three_convolutions(kind, scale), tmp_path, **WAYS[way])
    steps = loop_of(made.program).loop.body if way == "loop" else made.program.steps  # type: ignore[union-attr]
    assert [step.kind for step in steps].count("QUANTIZE") == (1 if way == "loop" else 3)
    assert [verdict.outcome for verdict in prove_rewrite(made.data, made.file())] == ["ok", "ok"]


def test_a_quantize_of_bytes_without_sign_stands_before_the_stripes_over_its_operand(tmp_path: Path) -> None:
    data = three_convolutions(3, (0.05, 121))
    made = striped(data, tmp_path, RecomputedHalo, first=1, last=3, trim_late=True)
    assert [verdict.outcome for verdict in prove_rewrite(made.data, made.file())] == ["ok", "ok"]
    whole = made.program.steps[0]
    assert whole.kind == "QUANTIZE"
    apart = made.place[whole.outputs[0]] - made.place[whole.inputs[0]]
    assert -made.program.nbytes(whole.outputs[0]) < apart <= 0


def test_a_loop_says_how_often_it_ran(make: Callable[[str], Striped]) -> None:
    made = make("loop of single rows")
    rows, memory = prove_rewrite(made.data, made.file())
    assert "12 iterations" in rows.details
    assert "1 loop with one address for each value" in memory.details


@pytest.mark.parametrize("way", ["recomputed", "recomputed and padded", "passed on", "backwards", "kept and trimmed"])
@pytest.mark.parametrize("rows", [-1, 1])
def test_a_window_off_by_one(make: Callable[[str], Striped], way: str, rows: int) -> None:
    made = make(way)
    found = [i for i, s in enumerate(made.program.steps) if s.kind == "SLICE" and s.inputs[0] == 0]
    inner = next(i for i in found if constant(made.program, made.program.steps[i].inputs[1])[1] > 0)
    last = made.program.steps[inner]
    begin, size = (constant(made.program, last.inputs[i])[1] for i in (1, 2))
    if begin + rows + size > 24:
        rows = -rows
    said = refused(made, lambda program: shift_slice(program, inner, rows))
    assert re.search(r"op \d+ \w+ \(byte \d+ of the file\)", said)


def test_a_window_of_the_wrong_parity(make: Callable[[str], Striped]) -> None:
    made = make("recomputed")
    reader = [i for i, s in enumerate(made.program.steps) if s.kind == "DEPTHWISE_CONV_2D"][1]
    window = made.program.steps[reader].inputs[0]
    cut = next(i for i, s in enumerate(made.program.steps) if s.outputs == (window,))
    said = refused(made, lambda program: shift_slice(program, cut, -1))
    assert "DEPTHWISE_CONV_2D" in said
    assert "the model makes rows" in said


@pytest.mark.parametrize("pads", [(0, 0), (1, 0)])
def test_a_bottom_padding_that_is_forgotten_or_at_the_top(
    make: Callable[[str], Striped], pads: tuple[int, int]
) -> None:
    made = make("kept and padded")
    last = step_at(made.program, "PAD", -2)
    old = constant(made.program, made.program.steps[last].inputs[1])
    assert old[2:4] == (0, 1)

    def forget(program: TfliteProgram) -> None:
        with_operand(program, last, 1, program.constant((*old[:2], *pads, *old[4:]), (4, 2)))
        if pads == (0, 0):
            at = program.steps[last].outputs[0] - len(program.graph.tensors)
            _, rows, *rest = program.added[at].shape
            program.added[at] = replace(program.added[at], shape=(1, rows - 1, *rest))

    assert "op " in refused(made, forget)


def test_a_padding_with_another_zero_point(make: Callable[[str], Striped]) -> None:
    made = make("kept and padded")
    padded = made.program.steps[step_at(made.program, "PAD")].outputs[0] - len(made.program.graph.tensors)
    other = made.program.graph.ops[2].outputs[0]

    def change(program: TfliteProgram) -> None:
        program.added[padded] = replace(program.added[padded], tensor=other)

    assert "changes its type or quantisation" in refused(made, change)


@pytest.mark.parametrize("way", ["kept and trimmed", "kept and padded", "uneven"])
def test_kept_rows_off_by_one(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    joins = [s for s in made.program.steps if s.kind == "CONCATENATION" and s.outputs[0] >= 6]
    firsts = {join.inputs[0] for join in joins}
    kept = [i for i, s in enumerate(made.program.steps) if s.kind == "SLICE" and s.outputs[0] in firsts]
    faults = [i for i in kept if constant(made.program, made.program.steps[i].inputs[1])[1] > 0]
    assert "op " in refused(made, lambda program: shift_slice(program, faults[0], -1))


@pytest.mark.parametrize("way", ["kept and trimmed", "recomputed", "backwards"])
def test_stripes_in_the_wrong_order(make: Callable[[str], Striped], way: str, tmp_path: Path) -> None:
    made = striped(three_convolutions(), tmp_path, **(WAYS[way] | {"cuts": (0, 4, 8, 12)}))
    last = step_at(made.program, "CONCATENATION", -1)

    def swap(program: TfliteProgram) -> None:
        first, second, *rest = program.steps[last].inputs
        program.steps[last] = replace(program.steps[last], inputs=(second, first, *rest))

    assert "CONCATENATION" in refused(made, swap)
    assert made.program.steps[last].outputs == made.program.graph.outputs


@pytest.mark.parametrize("way", ["recomputed", "kept and padded", "backwards", "passed on"])
def test_a_stripe_that_reads_a_row_that_is_overwritten(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    first = next(s for s in made.program.steps if s.kind == "CONV_2D")
    needed = made.place[0] + made.program.nbytes(0) // 2
    made.place[first.outputs[0]] = needed
    said = refused_file(made.data, made.file())
    assert re.search(r"of the arena, overwritten by op \d+ |which it still reads", said)


@pytest.mark.parametrize("way", ["loop", "loop with cuts", "loop of tiles", "uneven loop"])
def test_a_row_that_counts_is_overwritten(make: Callable[[str], Striped], way: str) -> None:
    """The result may run into rows that are read only to be cut off; one byte further is one that counts."""
    made = make(way)
    everything, least = largest_distance(made, used=False), largest_distance(made)
    assert everything <= least
    assert (everything < least) == (way in GAINING)
    assert [verdict.outcome for verdict in prove_rewrite(made.data, made.file())] == ["ok", "ok"]
    set_apart(made, least + 1)
    assert re.search(r"of the arena, overwritten by op \d+ ", refused_file(made.data, made.file()))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["loop", "loop with cuts", "uneven loop"])
def test_a_cut_that_keeps_a_row_that_was_overwritten(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    largest_distance(made)
    table = "cut_begins" if way != "loop with cuts" else "op1_cut_begins"
    begins = made.program.added[table_named(made.program, table)].numbers or ()
    for entry in range(1, len(begins), 4):
        for change in (-1, 1):
            faulty = deepcopy(made)
            change_table(faulty.program, table, entry, begins[entry] + change)
            assert "op " in refused_file(made.data, faulty.file())


@pytest.mark.slow
@pytest.mark.parametrize("way", ["loop", "loop of single rows", "loop with cuts", "loop of tiles"])
@pytest.mark.parametrize("table", ["window_begins", "cut_begins", "result_begins"])
@pytest.mark.parametrize("axis", [1, 2])
def test_one_entry_of_a_loops_table(make: Callable[[str], Striped], way: str, table: str, axis: int) -> None:
    if axis == 2 and way != "loop of tiles":
        pytest.skip("the table has no columns")
    whole = make(way)
    loop = loop_of(whole.program).loop
    assert loop is not None
    found = whole.program.added[table_named(whole.program, table)].numbers or ()
    least, most = min(found[axis::4]), max(found[axis::4])
    for iteration in range(loop.iterations):
        for change in (-1, 1):
            made, entry = deepcopy(whole), 4 * iteration + axis
            change_table(made.program, table, entry, found[entry] + change)
            outside = not least <= found[entry] + change <= most
            if table == "result_begins" and outside:  # the kernel moves such a start back inside
                prove_rewrite(made.data, made.file())
            else:
                assert "op " in refused_file(made.data, made.file())


@pytest.mark.slow
@pytest.mark.parametrize("way", ["carrying loop", "carrying loop of single rows"])
@pytest.mark.parametrize("table", ["op0_places_of_all", "op1_places_of_all", "op0_window_begins"])
def test_one_entry_of_a_table_of_a_loop_that_carries(make: Callable[[str], Striped], way: str, table: str) -> None:
    """An entry of an iteration that makes rows of the result is refused; what the others make is cut off."""
    whole = make(way)
    found = whole.program.added[table_named(whole.program, table)].numbers or ()
    entries = range(1, len(found), 4) if table == "op0_window_begins" else range(len(found))
    outcomes: Counter[str] = Counter()
    for entry in entries:
        made = deepcopy(whole)
        change_table(made.program, table, entry, found[entry] + (1 if not found[entry] else -1))
        try:
            prove_rewrite(made.data, made.file())
        except BrokenPlanError as refusal:
            outcomes["op " if "op " in str(refusal) else str(refusal)] += 1
        else:
            outcomes["proved"] += 1
    assert outcomes["op "] >= len(entries) // 3
    assert set(outcomes) <= {"op ", "proved"}


@pytest.mark.parametrize("way", ["carrying loop", "carrying loop of single rows"])
@pytest.mark.parametrize("rows", [-1, 1])
def test_carried_rows_off_by_one(make: Callable[[str], Striped], way: str, rows: int) -> None:
    made = make(way)
    step = loop_of(made.program)
    loop = step.loop
    assert loop is not None
    body = list(loop.body)
    at = next(i for i, inner in enumerate(body) if inner.outputs[0] in loop.outputs[2:-1])
    begin = constant(made.program, body[at].inputs[1])

    def shift(program: TfliteProgram) -> None:
        other = program.constant((0, begin[1] + rows, 0, 0))
        body[at] = replace(body[at], inputs=(body[at].inputs[0], other, body[at].inputs[2]))
        program.steps[program.steps.index(step)] = replace(step, loop=replace(loop, body=tuple(body)))

    assert "op " in refused(made, shift)


def test_rows_that_are_not_carried(make: Callable[[str], Striped]) -> None:
    made = make("carrying loop")
    data = made.file()
    left = number_of(data, "/left")
    free = planner.padded(planner.predicted_head(read_tflite(data, "striped")))
    assert "one value, two places" in refused_file(made.data, with_offset(data, left, free))


@pytest.mark.parametrize(
    "way", ["loop", "loop of single rows", "loop with cuts", "loop of tiles", "carrying loop of single rows"]
)
def test_one_iteration_too_few(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    flags = made.program.added[table_named(made.program, "going_on")].numbers or ()
    last = max(i for i, flag in enumerate(flags) if flag)
    said = refused(made, lambda program: change_table(program, "going_on", last, 0))
    assert "nothing wrote" in said


@pytest.mark.parametrize("word", ["loop/x", "loop/y", "loop/counter", "loop/updated"])
def test_a_value_of_a_loop_with_two_addresses(make: Callable[[str], Striped], word: str) -> None:
    made = make("loop")
    data = made.file()
    free = planner.padded(planner.predicted_head(read_tflite(data, "striped")))
    said = refused_file(made.data, with_offset(data, number_of(data, word), free))
    assert "one value, two places" in said


@pytest.mark.parametrize("part", [1, 2])
def test_a_loops_map_elsewhere_in_condition_or_body(make: Callable[[str], Striped], part: int) -> None:
    made = make("loop of single rows")
    data = made.file()
    model = read_tflite(data, "striped")
    free = planner.padded(planner.predicted_head(model))
    x = model.firsts[part] + model.subgraphs[part].inputs[1]
    assert "one value, two places" in refused_file(made.data, with_offset(data, x, free))


def test_offsets_that_overwrite_the_counter(make: Callable[[str], Striped]) -> None:
    made = make("loop")
    data = made.file()
    counter = (planner.read_plan(read_tflite(data, "striped")) or ())[number_of(data, "loop/counter")]
    window = number_of(data, "window_begin")
    said = refused_file(made.data, with_offset(data, window, counter))
    assert "loop/counter'" in said
    assert "overwritten by" in said


def test_maps_that_vector_kernels_cannot_read_where_they_lie(make: Callable[[str], Striped]) -> None:
    """ESP-NN on the ESP32-S3 drops the last bits of an address; its kernels for other chips do not."""
    made = make("kept and trimmed")
    data = made.file()
    prove_rewrite(made.data, data, "esp-nn-generic")
    with pytest.raises(BrokenPlanError, match="needs a multiple of 16"):
        prove_rewrite(made.data, data, "esp-nn")


@pytest.mark.parametrize("way", ["recomputed", "kept and trimmed"])
def test_a_cut_that_leaves_out_the_last_row(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    whole = {s.outputs[0] for s in made.program.steps if s.kind == "CONV_2D"}
    cuts = [i for i, s in enumerate(made.program.steps) if s.kind == "SLICE" and s.inputs[0] in whole]
    at = next(i for i in cuts if constant(made.program, made.program.steps[i].inputs[1])[1] > 0)
    assert "op " in refused(made, lambda program: shift_slice(program, at, -1))


def test_a_result_without_its_last_row(make: Callable[[str], Striped]) -> None:
    made = make("recomputed")
    last = step_at(made.program, "CONCATENATION", -1)

    def shorten(program: TfliteProgram) -> None:
        step = program.steps[last]
        program.steps[last] = replace(step, inputs=step.inputs[:-1])

    assert "whose shape in the file is" in refused(made, shorten)


def test_other_weights(make: Callable[[str], Striped]) -> None:
    made = make("recomputed")
    data = bytearray(made.file())
    weights = next(t for t in read_tflite(bytes(data), "striped").tensors if t.constant and t.type == 9)
    data[weights.content[0]] ^= 1
    assert "operand 1" in refused_file(made.data, bytes(data))


def test_another_model_is_no_rewrite(make: Callable[[str], Striped]) -> None:
    with pytest.raises(RequestError, match="is no rewrite of"):
        prove_rewrite(make("loop").data, random_cnn(0))


@pytest.mark.parametrize("way", ["recomputed", "loop"])
def test_swapped_files(make: Callable[[str], Striped], way: str) -> None:
    made = make(way)
    with pytest.raises(RequestError, match="were the two files swapped"):
        prove_rewrite(made.file(), made.data)


def test_a_model_equals_itself(make: Callable[[str], Striped]) -> None:
    data = make("loop").data
    _, memory = prove_rewrite(data, data)
    assert "TFLM's own planner" in memory.details


@pytest.mark.parametrize("seed", range(12))
def test_damaged_files_are_refused_or_equal(make: Callable[[str], Striped], seed: int) -> None:
    made = make("loop")
    data = made.file()
    for number in range(10):
        bad = damaged(random.Random(100 * seed + number), data)
        with contextlib.suppress(ModelPlanError):
            assert {verdict.level for verdict in prove_rewrite(made.data, bad)} <= {"rows", "memory"}


def test_a_tensor_that_is_too_large_to_follow(make: Callable[[str], Striped]) -> None:
    made = make("recomputed")
    data = bytearray(made.data)
    shape = struct.pack("<5i", 4, 1, 24, 10, 3)
    at = bytes(data).index(shape)
    struct.pack_into("<i", data, at + 8, 2_000_000)
    with pytest.raises(ModelError, match="too large to follow"):
        prove_rewrite(bytes(data), made.file())


def folded_file(data: bytes, folder: Path) -> bytes:
    """The model with its PAD folded into the convolution, whatever the zero points."""
    fewer = folded(graph_of(data, folder), lambda _a, _b: True)
    return write_striped(data, striped_program(fewer.graph, range(len(fewer.graph.ops)), (), fewer.file_ops))[0]


def test_a_folded_padding_is_proved(tmp_path: Path) -> None:
    data = padded_convolution()
    folded_data = folded_file(data, tmp_path)
    assert len(read_tflite(folded_data, "folded").subgraphs[0].ops) == 1
    assert [verdict.outcome for verdict in prove_rewrite(data, folded_data)] == ["ok", "ok"]


def test_a_folded_padding_of_another_zero_point(tmp_path: Path) -> None:
    data = padded_convolution(zero=5)
    assert "operand 0" in refused_file(data, folded_file(data, tmp_path))


def whole_graph(path: Path) -> Folded:
    graph = load(path)
    assert isinstance(graph, Graph)
    return Folded(graph, tuple(range(len(graph.ops))))


def written(data: bytes, whole: Folded) -> bytes:
    return write_striped(data, striped_program(whole.graph, whole.file_ops, (), whole.file_ops))[0]


def test_pointwise_convolutions_with_a_dilation_are_proved(models: Path) -> None:
    """CMSIS-NN takes another kernel for them; with TFLM's own nothing is gained, and nothing changed."""
    path = models / "mobilenet_v2_like.tflite"
    data, whole = path.read_bytes(), whole_graph(path)
    assert with_dilations(whole, TFLM) is whole
    other = with_dilations(whole, with_kernels(TFLM, "cmsis-dsp"))
    pairs = [(a, b) for a, b in zip(whole.graph.ops, other.graph.ops, strict=True) if a != b]
    assert len(pairs) > 5
    for before, after in pairs:
        assert whole.graph.tensors[before.inputs[1]].shape[1:3] == (1, 1)
        assert after.attribute("dilation_w_factor") == after.attribute("dilation_h_factor") == 2
    changed = written(data, other)
    again = read_tflite(changed, "gathered").subgraphs[0].ops
    dilated = [op for op in again if op.kind == "CONV_2D" and op.options.DilationWFactor() == 2]
    assert len(dilated) == len(pairs)
    assert [verdict.outcome for verdict in prove_rewrite(data, changed)] == ["ok", "ok"]


def test_a_dilation_of_a_larger_kernel_is_no_equal(models: Path) -> None:
    path = models / "mobilenet_v2_like.tflite"
    data, whole = path.read_bytes(), whole_graph(path)
    ops = list(whole.graph.ops)
    large = next(i for i, op in enumerate(ops) if whole.graph.tensors[op.inputs[1]].shape[1:3] == (3, 3))
    assert ops[large].kind == "CONV_2D"
    given = dict(ops[large].attributes) | {"dilation_h_factor": 2, "dilation_w_factor": 2}
    ops[large] = replace(ops[large], attributes=tuple(given.items()))
    other = replace(whole, graph=replace(whole.graph, ops=tuple(ops)))
    with pytest.raises(BrokenPlanError, match="not equal"):
        prove_rewrite(data, written(data, other))
