"""Outputs that run into an operand: how far they must stay ahead, who may, and who refuses one byte more."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import overlap_sweep
import pytest

from modelplan import BrokenPlanError, Graph, ModelError, Op, Placement, Problem, Tensor, check, height, load, plan
from modelplan.answers.saved_plan import read
from modelplan.answers.summary import summary
from modelplan.checking.verifier.addresses import AddressLayout
from modelplan.checking.verifier.esp_nn import needed_multiple
from modelplan.checking.verifier.program import Program, graph_program
from modelplan.checking.verifier.replay import replay
from modelplan.checking.verifier.safe_overlap import least_lead
from modelplan.checking.verifier.static import check_static
from modelplan.checking.verifier.subject import check_declared, plan_subject, table_subject
from modelplan.cli import main
from modelplan.formats.stated_tables import parse_overlaps
from modelplan.model import KernelLibrary, Kind
from modelplan.model.bounds import load_bound
from modelplan.ops import facts, tflite
from modelplan.outputs.exchange.json_plan import render
from modelplan.outputs.report import plain
from modelplan.outputs.reports import plan_report as text
from modelplan.outputs.reports.plan_report import used_overlaps
from modelplan.planning.aliasing.explaining import reasons
from modelplan.planning.aliasing.rules import MODES
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import RequestError
from modelplan.questions.option_files import carried_plan
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.kernels import LIBRARIES

WIDTH = {"float32": 4, "int8": 1, "int16": 2}


def one(
    kind: str,
    shapes: list[tuple[int, ...]],
    out: tuple[int, ...],
    dtypes: tuple[str, str] = ("int8", "int8"),
    weights: tuple[int, ...] = (),
    **attributes: object,
) -> Graph:
    """A model of one operator over inputs of `shapes`."""
    tensors = [Tensor(f"x{i}", shape, dtypes[0]) for i, shape in enumerate(shapes)]
    tensors += [Tensor("w", weights, dtypes[0], Kind.CONSTANT)] if weights else []
    tensors.append(Tensor("y", out, dtypes[1]))
    last = len(tensors) - 1
    op = Op("", kind, tuple(range(last)), (last,), tuple(attributes.items()))  # type: ignore[arg-type]
    return Graph("g", "tflite", tuple(tensors), (op,), tuple(range(len(shapes))), (last,))


def window(kind: str, x: tuple[int, ...], channels: int, k: int, stride: int, padding: str, dilation: int = 1) -> Graph:
    reach = (k - 1) * dilation + 1
    extents = [-(-n // stride) if padding == "SAME" else (n - reach) // stride + 1 for n in x[1:3]]
    weights = {"CONV_2D": (channels, k, k, x[3]), "DEPTHWISE_CONV_2D": (1, k, k, channels)}.get(kind, ())
    size: dict[str, Any] = {} if weights else {"filter_height": k, "filter_width": k}
    steps: dict[str, Any] = {
        "stride_h": stride,
        "stride_w": stride,
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
    }
    return one(kind, [x], (x[0], *extents, channels), weights=weights, padding=padding, **steps, **size)


def window_reads(graph: Graph, k: int, stride: int, padding: str, dilation: int = 1) -> list[list[int]]:
    """The operand's elements that each element of the output is made of, by the plain nest of loops."""
    x, y, kind = graph.tensors[0].shape, graph.tensors[-1].shape, graph.ops[0].kind
    reach = (k - 1) * dilation + 1
    pads = [max((y[a] - 1) * stride + reach - x[a], 0) // 2 if padding == "SAME" else 0 for a in (1, 2)]
    found = []
    for b, row, column, channel in itertools.product(*map(range, y)):
        taps = []
        for i, j in itertools.product(range(k), range(k)):
            r, c = row * stride - pads[0] + i * dilation, column * stride - pads[1] + j * dilation
            if 0 <= r < x[1] and 0 <= c < x[2]:
                depth = range(x[3]) if kind == "CONV_2D" else [channel // (y[3] // x[3])]
                taps += [((b * x[1] + r) * x[2] + c) * x[3] + d for d in depth]
        found.append(taps)
    return found


def exact(reads: list[list[int]], out: int, into: int) -> int:
    """The least lead by definition: before each element is read for, all before it were written."""
    lead = 0
    for j in range(len(reads)):
        needed = min((min(later) for later in reads[j:] if later), default=None)
        if needed is not None:
            lead = max(lead, j * out - needed * into)
    return lead


def derived(graph: Graph, operand: int = 0) -> int | None:
    row = facts("tflite", graph.ops[0].kind)
    assert row.lead is not None
    return row.lead(graph, graph.ops[0], operand)


def walked(graph: Graph) -> Program:
    return replace(graph_program(graph, [0]), sequential=True, plain_loops=True)


#: The strides of a slice, as the loader keeps them.
EVERY_OTHER: dict[str, Any] = {"operand 3": (1, -1)}
WINDOWS = [
    (kind, x, channels, k, stride, padding, dilation)
    for kind, counts in [("CONV_2D", (1, 2, 5)), ("DEPTHWISE_CONV_2D", (2, 4)), ("MAX_POOL_2D", (2,))]
    for channels in counts
    for x in [(1, 5, 4, 2), (2, 4, 5, 2)]
    for k, stride, dilation in [(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1), (2, 2, 1), (2, 1, 2)]
    for padding in ("SAME", "VALID")
]


@pytest.mark.parametrize(("kind", "x", "channels", "k", "stride", "padding", "dilation"), WINDOWS)
def test_windows_lead_by_what_their_loops_need(
    kind: str, x: tuple[int, ...], channels: int, k: int, stride: int, padding: str, dilation: int
) -> None:
    """Both reach the least lead exactly, planning not where a dilated window skips the corner it is taken to read."""
    graph = window(kind, x, channels, k, stride, padding, dilation)
    least = exact(window_reads(graph, k, stride, padding, dilation), 1, 1)
    found = derived(graph)
    assert found is not None
    assert found == least or (dilation > 1 and found >= least)
    assert least_lead(walked(graph), walked(graph).steps[0], 0, 0) == least


@pytest.mark.parametrize("dtypes", [("int8", "float32"), ("float32", "int8"), ("int8", "int8"), ("int16", "float32")])
@pytest.mark.parametrize("n", [1, 2, 13])
def test_elements_one_by_one(dtypes: tuple[str, str], n: int) -> None:
    graph = one("CAST", [(n,)], (n,), dtypes)
    least = exact([[i] for i in range(n)], WIDTH[dtypes[1]], WIDTH[dtypes[0]])
    assert derived(graph) == least == least_lead(walked(graph), walked(graph).steps[0], 0, 0)


def test_a_broadcast_operand_is_read_again() -> None:
    assert derived(one("ADD", [(4,), (3, 4)], (3, 4))) is None
    assert derived(one("ADD", [(4,), (3, 4)], (3, 4)), 1) == 0


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 6, 4), (3, 6, 4), (3, 4, 6)])
def test_rows_of_a_matrix(rows: int, inputs: int, outputs: int) -> None:
    graph = one("FULLY_CONNECTED", [(rows, inputs)], (rows, outputs), weights=(outputs, inputs))
    reads = [list(range(r * inputs, (r + 1) * inputs)) for r in range(rows) for _ in range(outputs)]
    assert derived(graph) == exact(reads, 1, 1) == least_lead(walked(graph), walked(graph).steps[0], 0, 0)


def test_runs_are_copied_whole() -> None:
    """memcpy must not overlap itself: a run is written entirely below where it is read."""
    graph = one("CONCATENATION", [(1, 3, 2), (1, 3, 4)], (1, 3, 6), axis=2)
    for operand, (before, run) in enumerate([(0, 2), (2, 4)]):
        ends = [r * 6 + before + run - r * run for r in range(3)]
        assert derived(graph, operand) == max(ends) == least_lead(walked(graph), walked(graph).steps[0], operand, 0)
    assert derived(one("PAD", [(1, 3, 2)], (1, 5, 2))) == 4
    assert derived(one("SLICE", [(4, 3, 2)], (4, 2, 2))) == 4
    assert derived(one("STRIDED_SLICE", [(4, 3)], (4, 3), **EVERY_OTHER)) is None


@pytest.mark.parametrize(("dtype", "least"), [("int8", 0), ("int16", 0), ("float32", None)])
def test_sums_of_integers_are_written_when_all_was_read(dtype: str, least: int | None) -> None:
    graph = one("TRANSPOSE_CONV", [(4,), (9,), (1, 2, 2, 3)], (1, 4, 4, 3), (dtype, dtype))
    assert derived(graph, 2) == least == least_lead(walked(graph), walked(graph).steps[0], 2, 0)
    assert derived(graph, 1) is None is least_lead(walked(graph), walked(graph).steps[0], 1, 0)


def chain(kind: str = "DEQUANTIZE") -> Graph:
    """x -> QUANTIZE-like widening -> y -> NEG -> z: the first may run into x if it starts far enough ahead."""
    tensors = (Tensor("x", (64,), "int8"), Tensor("y", (64,), "float32"), Tensor("z", (64,), "float32"))
    ops = (Op("", kind, (0,), (1,)), Op("", "NEG", (1,), (2,)))
    return Graph("g", "tflite", tensors, ops, (0,), (2,))


def test_verifier_refuses_one_byte_more() -> None:
    """Static and replay: at the least lead the output may run into the operand, one byte further it may not."""
    graph = chain()
    program = replace(graph_program(graph, [0, 1]), sequential=True)
    for lead, sound in [(189, True), (190, True), (188, False), (0, False)]:
        layout = AddressLayout({0: lead, 1: 0, 2: 1000})
        for level in (check_static, replay):
            if sound:
                level(program, layout)
            else:
                with pytest.raises(BrokenPlanError, match="op 0 DEQUANTIZE"):
                    level(program, layout)
    with pytest.raises(BrokenPlanError):  # nothing is known of these kernels
        check_static(replace(program, sequential=False), AddressLayout({0: 189, 1: 0, 2: 1000}))


def test_an_operand_that_is_read_again_is_safe_from_it() -> None:
    tensors = (*chain().tensors, Tensor("late", (64,), "int8"))
    ops = (*chain().ops, Op("", "NEG", (0,), (3,)))
    graph = Graph("g", "tflite", tensors, ops, (0,), (2, 3))
    assert 1 not in {o.tensor for o in plan(graph, Options("tflm", "file", "max")).overlaps}
    program = replace(graph_program(graph, [0, 1, 2]), sequential=True)
    with pytest.raises(BrokenPlanError):
        replay(program, AddressLayout({0: 189, 1: 0, 2: 1000, 3: 2000}))


def test_a_result_that_nobody_reads_still_harms_what_it_covers() -> None:
    """Both levels: the output dies at once, the operand under it is read later."""
    tensors = (Tensor("x", (8,), "int8"), Tensor("unread", (8,), "int8"), Tensor("z", (8,), "int8"))
    graph = Graph("g", "tflite", tensors, (Op("", "NEG", (0,), (1,)), Op("", "NEG", (0,), (2,))), (0,), (2,))
    for level in (check_static, replay):
        with pytest.raises(BrokenPlanError):
            level(graph_program(graph, [0, 1]), AddressLayout({0: 0, 1: 0, 2: 64}))


def test_a_plan_uses_the_overlap_and_says_so() -> None:
    graph = chain()
    apart, made = (plan(graph, Options("tflm", "file", mode)) for mode in ("views", "safe"))
    assert (height(apart.problem, apart.placement), height(made.problem, made.placement)) == (512, 256)
    shape = Graph("g", "tflite", graph.tensors[:2], graph.ops[:1], (0,), (1,))
    made = plan(shape, Options("tflm", "file", "safe"))
    assert height(made.problem, made.placement) == 256
    figures = summary(made)
    assert figures.overlapped == 64
    assert figures.planned == figures.activations + figures.alignment_loss + figures.fragmentation - figures.overlapped
    assert not figures.jointly_optimal
    [(overlap, shared)] = used_overlaps(made)
    assert (overlap.lead, shared) == (189, 64)
    said = plain(text.sections_of(made))
    assert "written over what is still read" in said
    assert "orders are compared by this figure" in said
    assert "right for the reference kernels of tflm only" in said
    assert read(render(made)) == made
    assert json.loads(render(made))["plan"]["overlaps"][0]["lead"] == 189
    assert any("may run into 'x'" in line for line in reasons(made, "y"))


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_the_numbers_of_tensors_decide_nothing(order: tuple[int, ...]) -> None:
    graph, place = chain(), dict(zip(order, range(3), strict=True))
    ops = tuple(replace(op, inputs=(place[op.inputs[0]],), outputs=(place[op.outputs[0]],)) for op in graph.ops)
    numbered = Graph("g", "tflite", tuple(graph.tensors[t] for t in order), ops, (place[0],), (place[2],))
    made = plan(numbered, Options("tflm", "file", "safe"))
    assert height(made.problem, made.placement) == 256
    assert [(o.tensor, o.lead) for o in made.overlaps] == [(place[1], 189)]


def test_the_plans_own_word_does_not_count() -> None:
    """A plan that claims more than its operator stands is refused, whatever its rows say."""
    shape = Graph("g", "tflite", chain().tensors[:2], chain().ops[:1], (0,), (1,))
    made = plan(shape, Options("tflm", "file", "safe"))
    claimed = replace(made, overlaps=(replace(made.overlaps[0], lead=188),))
    with pytest.raises(BrokenPlanError, match="188 bytes before"):
        check_declared(plan_subject(claimed))
    moved = replace(made, placement=Placement(np.array([176, 0])))
    with pytest.raises(BrokenPlanError, match="cannot work in place"):
        replay(plan_subject(moved).program, plan_subject(moved).layout)


@pytest.mark.parametrize("kernels", ["all", "esp-nn@1.1.0"])
def test_other_kernels_are_not_trusted(kernels: str) -> None:
    assert not plan(chain(), Options("tflm", "file", "max", kernels=kernels)).overlaps


def quantised_under(library: str) -> int | None:
    """By how many bytes the verifier has a QUANTIZE of bytes write ahead with a library whose order planning knows."""
    program = replace(walked(one("QUANTIZE", [(2, 3)], (2, 3))), plain_loops=False, library=library)
    return least_lead(program, program.steps[0], 0, 0)


def test_the_verifier_knows_each_library_by_name_and_refuses_others() -> None:
    known = {library.name for row in RUNTIMES.values() for library in row.libraries if library.sequential}
    assert {"reference", "portable", "cmsis-nn", "cmsis-mve", "esp-nn", "esp-nn-generic"} <= known
    assert {name: quantised_under(name) for name in known} == dict.fromkeys(known, 0)
    assert quantised_under("cmsis-mve@0") is quantised_under("esp-nn@1.2.1") is None


# -- CMSIS-NN ----------------------------------------------------------------------------------------------------------

CMSIS_NN = ["cmsis-c", "cmsis-dsp", "cmsis-mve"]
#: Operators that TFLM builds from files of its folder cmsis_nn.
REPLACED = {
    "ADD", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAXIMUM",
    "MAX_POOL_2D", "MINIMUM", "MUL", "PAD", "PADV2", "SOFTMAX", "SVDF", "TRANSPOSE", "TRANSPOSE_CONV",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
}  # fmt: skip


def lead_under(kernels: str, graph: Graph) -> int | None:
    """What planning allows; the verifier has to say the same."""
    program = replace(graph_program(graph, [0]), sequential=True, library=kernels)
    lead = LIBRARIES[kernels].leads
    assert lead is not None
    found = lead[graph.ops[0].kind](graph, graph.ops[0], 0)
    assert least_lead(program, program.steps[0], 0, 0) == found
    return found


@pytest.mark.parametrize("kernels", CMSIS_NN)
def test_every_overlap_of_a_kernel_that_cmsis_nn_replaces_has_a_lead_of_its_own(kernels: str) -> None:
    leads = LIBRARIES[kernels].leads
    assert leads is not None
    assert leads.keys() == REPLACED & TFLM.sharing.front_to_back.keys()


@pytest.mark.slow
@pytest.mark.parametrize("kernels", CMSIS_NN)
def test_both_derivations_of_cmsis_nn_agree(kernels: str) -> None:
    for case in itertools.islice(overlap_sweep.cases(11), 700):
        lead_under(kernels, overlap_sweep.graph_of(case))


#: Operator, operand, output channels, kernel, stride, dilation, and the lead on the paths C, DSP and MVE. Pixels are
#: gathered by two or four before they are written; matrix products of pixels where they lie need the whole map on C and
#: DSP, four pixels less one element on MVE.
PATHS = [
    ("CONV_2D", (1, 4, 4, 8), 16, 1, 1, 1, (254, 254, 16 * 16 - 1 - 12 * 8)),
    ("CONV_2D", (1, 4, 4, 8), 16, 1, 1, 2, (14 * 16 - 14 * 8, 14 * 16 - 14 * 8, 12 * 16 - 12 * 8)),
    ("CONV_2D", (1, 4, 4, 8), 8, 1, 1, 2, (0, 0, 0)),
    ("CONV_2D", (1, 4, 4, 8), 2, 1, 1, 1, (0, 0, 7)),
    ("CONV_2D", (1, 4, 4, 8), 9, 1, 2, 1, (17, 17, 8)),
    ("DEPTHWISE_CONV_2D", (1, 4, 4, 8), 8, 3, 1, 1, (40, 40, 32)),
    ("MAX_POOL_2D", (1, 4, 4, 8), 8, 2, 2, 1, (8, 8, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "x", "channels", "k", "stride", "dilation", "leads"), PATHS)
def test_leads_of_cmsis_nn(
    kind: str, x: tuple[int, ...], channels: int, k: int, stride: int, dilation: int, leads: tuple[int, ...]
) -> None:
    graph = window(kind, x, channels, k, stride, "SAME", dilation)
    if kind == "DEPTHWISE_CONV_2D":
        each = (*graph.ops[0].attributes, ("depth_multiplier", 1))
        graph = replace(graph, ops=(replace(graph.ops[0], attributes=each),))
    assert tuple(lead_under(kernels, graph) for kernels in CMSIS_NN) == leads


def with_weights(graph: Graph, shape: tuple[int, ...], dtype: str = "int8") -> Graph:
    tensors = (graph.tensors[0], replace(graph.tensors[1], shape=shape, dtype=dtype), *graph.tensors[2:])
    return replace(graph, tensors=tensors)


@pytest.mark.parametrize("kernels", CMSIS_NN)
def test_kernels_of_cmsis_nn_that_were_not_followed_are_refused(kernels: str) -> None:
    graph = window("CONV_2D", (1, 4, 4, 8), 8, 3, 1, "SAME")
    assert lead_under(kernels, graph) is not None
    assert lead_under(kernels, with_weights(graph, (8, 3, 3, 4))) is None  # two groups
    assert lead_under(kernels, with_weights(graph, (8, 3, 3, 8), "int4")) is None


def test_a_single_channel_may_write_beyond_its_scratch_with_helium() -> None:
    graph = window("DEPTHWISE_CONV_2D", (1, 4, 4, 1), 3, 3, 1, "SAME")
    each = (*graph.ops[0].attributes, ("depth_multiplier", 3))
    graph = replace(graph, ops=(replace(graph.ops[0], attributes=each),))
    assert [lead_under(kernels, graph) is None for kernels in CMSIS_NN] == [False, False, True]


def test_a_map_of_more_than_124_channels_is_walked_twice_with_helium() -> None:
    for channels, known in [(124, True), (125, False)]:
        graph = window("DEPTHWISE_CONV_2D", (1, 4, 4, channels), channels, 3, 1, "SAME")
        each = (*graph.ops[0].attributes, ("depth_multiplier", 1))
        graph = replace(graph, ops=(replace(graph.ops[0], attributes=each),))
        assert (lead_under("cmsis-mve", graph) is not None) == known
        assert lead_under("cmsis-dsp", graph) is not None


# -- ESP-NN ------------------------------------------------------------------------------------------------------------


def esp_lead(graph: Graph) -> int | None:
    each = (*graph.ops[0].attributes, ("depth_multiplier", 1))
    return lead_under("esp-nn", replace(graph, ops=(replace(graph.ops[0], attributes=each),)))


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["esp-nn", "esp-nn-generic"])
def test_both_derivations_of_esp_nn_agree(kernels: str) -> None:
    leads = LIBRARIES[kernels].leads or {}
    several = [case for case in itertools.islice(overlap_sweep.cases(12), 1500) if case.kind in leads]
    assert len(several) > 600
    for case in several:
        lead_under(kernels, overlap_sweep.graph_of(case))


@pytest.mark.parametrize("library", TFLM.libraries, ids=lambda library: library.name)
def test_the_verifier_knows_which_maps_must_be_aligned(library: KernelLibrary) -> None:
    kinds = {kind for kind in tflite.OPERATORS if needed_multiple(library.name, kind) > 1}
    assert kinds == library.aligned
    assert {needed_multiple(library.name, kind) for kind in kinds} <= {TFLM.alignment}


def test_a_pointwise_convolution_of_esp_nn_reads_channels_left_over_again() -> None:
    """Of 25 pixels the first 24 in eights: when it reads the last of eight, all but one of their elements stand."""
    last = 24 * 9 - 1 - 16 * 6
    assert esp_lead(window("CONV_2D", (1, 5, 5, 6), 9, 1, 1, "SAME")) == last
    assert esp_lead(window("CONV_2D", (1, 5, 5, 8), 9, 1, 1, "SAME")) == 25 * 9 - 1 - 24 * 8
    assert esp_lead(window("CONV_2D", (1, 5, 5, 6), 9, 1, 1, "SAME", 2)) == 25 * 9 - 1 - 24 * 6


#: Rows, columns, channels, stride and padding of a depthwise convolution of 3x3, and whether it may write over its
#: operand: it may not where it goes over the map for every 16 channels, nor with less scratch than it uses.
WALKS = [
    (6, 6, 32, 1, "SAME", True), (6, 6, 32, 1, "VALID", False), (6, 6, 16, 1, "VALID", True),
    (6, 6, 24, 1, "VALID", True), (6, 6, 32, 2, "SAME", True), (7, 7, 32, 2, "VALID", True),
    (6, 6, 32, 2, "VALID", False), (41, 41, 32, 2, "VALID", False), (40, 40, 32, 1, "SAME", True),
    (5, 6, 32, 2, "SAME", False),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "columns", "channels", "stride", "padding", "may"), WALKS)
def test_depthwise_convolutions_of_esp_nn(
    rows: int, columns: int, channels: int, stride: int, padding: str, *, may: bool
) -> None:
    graph = window("DEPTHWISE_CONV_2D", (1, rows, columns, channels), channels, 3, stride, padding)
    assert (esp_lead(graph) is not None) == may
    assert lead_under("esp-nn-generic", graph) is not None


# -- other runtimes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", ["litert", "ort", "executorch"])
def test_kernels_that_run_in_parallel_are_not_trusted(runtime: str) -> None:
    assert not plan(chain(), Options(runtime, "file", "max")).overlaps


def test_an_operand_that_is_read_twice_counts_once() -> None:
    tensors = (Tensor("x", (16,), "int8"), Tensor("y", (16,), "int16"))
    graph = Graph("g", "tflite", tensors, (Op("", "ADD", (0, 0), (1,)),), (0,), (1,))
    made = plan(graph, Options("tflm", "file", "max"))
    lead = made.overlaps[0].lead
    assert made.problem.overlaps.tolist() == [[1, 0, 16]]  # 32 bytes less the lead, as far as 16-byte alignment lets it
    assert 32 - lead == 17
    assert height(made.problem, made.placement) == 32


# -- on the caller's word ----------------------------------------------------------------------------------------------


def table(*rows: str) -> str:
    return "\n".join(("output,input,bytes", *rows)) + "\n"


def test_a_declared_overlap_is_used_to_the_byte() -> None:
    tensors = (Tensor("x", (64,), "int8"), Tensor("y", (64,), "int8"))
    graph = Graph("g", "tflite", tensors, (Op("", "REVERSE_V2", (0,), (1,)),), (0,), (1,))
    (overlap,) = parse_overlaps(table("y,x,32"), graph, "o.csv")
    assert (overlap.lead, overlap.declared) == (32, True)
    made = plan(graph, Options("tflm", "file", "views", overlaps=(overlap,)))
    assert height(made.problem, made.placement) == 96
    assert "on the caller's word" in reasons(made, "y")[0]
    problem = replace(made.problem, names=("x", "y"), members=(), overlaps=np.zeros((0, 3), dtype=np.int64))
    for at, sound in [(32, True), (31, False)]:
        subject = table_subject(
            graph, problem, Placement(np.array([at, 0])), replace(made.runtime, alignment=1), [overlap]
        )
        if sound:
            check_static(subject.program, subject.layout)
        else:
            with pytest.raises(BrokenPlanError):
                check_static(subject.program, subject.layout)
    with pytest.raises(RequestError, match="streams"):
        plan(graph, Options("tflm", "file", "views", streams=1, overlaps=(overlap,)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("a,b,c\n", "expected output,input,bytes"),
        (table("y,x"), "line 2: found 2 cells"),
        (table("y,q,1"), "line 2: 0 tensors are called 'q'"),
        (table("x,y,1"), "no operator writes 'x'"),
        (table("z,x,1"), "does not read 'x'"),
        (table("y,x,0"), "expected 1 to 256"),
        (table("y,x,257"), "expected 1 to 256"),
        (table("y,x,1e3"), "expected 1 to 256"),
        (table("y,x,4", "y,x,8"), "more than once"),
    ],
)
def test_bad_tables_are_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse_overlaps(text, chain(), "o.csv")


def test_declared_overlaps_reach_the_commands(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`analyze` uses the table and says so; what verifies its table of offsets needs to be told the same."""
    model, wish = str(corpus / "tflite" / "simple_add_model.tflite"), tmp_path / "wish.csv"
    graph = load(corpus / "tflite" / "simple_add_model.tflite")
    assert isinstance(graph, Graph)
    output, operand = graph.tensors[graph.outputs[0]], graph.tensors[graph.inputs[0]]
    wish.write_text(table(f"{graph.outputs[0]},{graph.inputs[0]},{output.nbytes}"))
    csv, planned = str(tmp_path / "p.csv"), str(tmp_path / "p.json")
    asked = ["analyze", model, "--overlaps", str(wish), "--why-not", output.name]
    assert main([*asked, "--csv", csv, "--json", planned]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"may run into {operand.name!r}" in said
    assert "on the caller's word" in said
    assert main(["verify", planned, "--quick"]) == 0
    assert main(["verify", csv, "--model", model, "--overlaps", str(wish), "--quick"]) == 0
    wish.write_text("output;input\n")
    assert main(asked) == 3
    assert "line 1" in capsys.readouterr().err
    assert main(["analyze", model, "--overlaps", str(tmp_path / "none.csv")]) == 2


# -- operators that order their own reads and writes -------------------------------------------------------------------


def test_the_plan_of_a_vela_model_is_taken(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its operands lie inside its work areas; analyze and verify take the offsets as they are."""
    path = str(corpus / "tflite" / "person_detect_vela.tflite")
    out = str(tmp_path / "plan.json")
    assert main(["analyze", path, "--allocator", "file", "--json", out, "--verbose"]) == 0
    assert main(["verify", out, "--quick"]) == 0
    assert main(["verify", path, "--quick"]) == 0
    assert "written over what is still read" in capsys.readouterr().out
    offsets = carried_plan(path)
    made = read(Path(out).read_text())
    for at, members in zip(made.placement.offsets, made.problem.members, strict=True):
        assert all(offsets[m.tensor] in (-1, at + m.delta) for m in members)
    assert len(made.problem.overlaps) == len(made.overlaps) == 6
    assert height(made.problem, made.placement) == 74_560
    assert load_bound(made.problem) == 74_464


def test_nothing_else_may_overlap_in_a_vela_model(corpus: Path) -> None:
    """One byte beyond what the compiler chose is refused, and so is the same overlap around another operator."""
    path = corpus / "tflite" / "person_detect_vela.tflite"
    graph = load(path)
    assert isinstance(graph, Graph)
    made = plan(graph, Options("tflm", "file", "views", "tflm-greedy", offsets=carried_plan(str(path))))
    below, above, shared = made.problem.overlaps[0]
    fewer = made.problem.overlaps.copy()
    fewer[0] = below, above, shared - 1
    with pytest.raises(BrokenPlanError, match="share bytes"):
        check(replace(made.problem, overlaps=fewer), made.placement)
    ordinary = replace(graph, ops=(replace(graph.ops[0], kind="CUSTOM:other"),))
    with pytest.raises(BrokenPlanError, match="share bytes"):
        plan(ordinary, Options("tflm", "file", "views", "tflm-greedy", offsets=carried_plan(str(path))))


def test_the_bound_survives_overlaps_in_both_directions() -> None:
    facts = np.array([(0, 1, 10), (1, 0, 4)])
    problem = Problem(("a", "b"), np.array([10, 4]), np.array([0, 0]), np.array([1, 1]), overlaps=facts)
    assert load_bound(problem) == 10
    check(problem, Placement(np.array([0, 3])))


def test_person_detect_fits_in_two_thirds(corpus: Path) -> None:
    """The pointwise convolution that is the peak runs over its own input."""
    graph = load(corpus / "tflite" / "person_detect.tflite")
    assert isinstance(graph, Graph)
    heights = [plan(graph, Options(alias=mode, schedule="file")) for mode in ("views", "safe")]
    assert [height(p.problem, p.placement) for p in heights] == [55_296, 36_880]
    assert prod(graph.tensors[graph.ops[2].outputs[0]].shape) == 36_864


def test_an_output_that_took_one_operand_cannot_run_into_the_other() -> None:
    """At the first step both operands are inputs: the block of the output is in use before it is written."""
    tensors = tuple(Tensor(name, (64,), "int8") for name in ("a", "b", "y"))
    graph = Graph("g", "tflite", tensors, (Op("", "ADD", (0, 1), (2,)),), (0, 1), (2,))
    for mode in ("safe", "max"):
        made = plan(graph, Options("tflm", "file", mode))
        assert height(made.problem, made.placement) == 128
        assert not made.overlaps


@pytest.mark.slow
def test_a_packed_plan_with_overlaps_says_what_it_needs_and_is_usable(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its offsets are taken as they are, whatever may share bytes besides."""
    source, packed = str(corpus / "tflite" / "person_detect.tflite"), str(tmp_path / "packed.tflite")
    assert main(["pack", source, "--alias", "safe", "--kernels", "reference", "-o", packed]) == 0
    said = capsys.readouterr().out
    assert "36,880 B" in said
    assert "reference kernels only" in said
    for mode in MODES:
        out = str(tmp_path / f"{mode}.json")
        assert main(["analyze", packed, "--allocator", "file", "--alias", mode, "--json", out]) == 0
        made = read(Path(out).read_text())
        assert height(made.problem, made.placement) == made.runtime_height == 36_880
    assert main(["verify", packed, "--quick"]) == 0
    assert main(["verify", packed, "--quick", "--kernels", "cmsis-dsp"]) == 4
    assert main(["pack", source, "--alias", "safe", "--kernels", "cmsis-dsp", "-o", packed]) == 0
    assert "reference kernels only" not in capsys.readouterr().out
