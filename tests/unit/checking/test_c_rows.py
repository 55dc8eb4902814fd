"""The proof of plans in plain C: right ones pass, and every kind of fault is caught without running anything."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from c_operators import DRAWS, Drawn, Single, batch, drawn_single
from c_plans import random_stages
from random_cnns import deep_cnn
from shares import few_first, share
from standalone_c import apart, c_operators
from tflm_models import Op, S, T, build

from modelplan.checking.verifier.c_rows import rows_verdict
from modelplan.checking.verifier.rewrites.reading import Source, read_source
from modelplan.formats import load_model
from modelplan.model.c_program import CProgram, KernelCall, RowsRead, Stage, StageChoice, Step, StoredValue, ValueShift
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.drawn_program import drawing_of
from modelplan.plain_c.rows.placing_rows import placed_program
from modelplan.plain_c.rows.row_graph import with_chains
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.tile_search import chains_between
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.runtimes.tflm.file import load_tflite, read_tflite

MODELS = Path(__file__).resolve().parents[3] / "models"


@cache
def planned(
    name: str, fused: int, parts: int = 1, *, backward: bool = False, pushed: bool = False, kernels: str = "portable"
) -> tuple[Source, CProgram]:
    """A model whose first operators run together, and the plan."""
    path = str(MODELS / name)
    file = load_tflite(path)
    model = CModel(load_model(path), file, kernels)
    graph = StagedGraph(model.rows, pushed)
    stages = [StageChoice(0, fused, parts, backward)]
    stages += [StageChoice(i, i + 1, 1, bool(i % 2)) for i in range(fused, len(model.rows.order))]
    return read_source(file), replace(placed_program(graph, stages, 300), kernels=kernels)


@cache
def tiled(*, backward: bool = False, pushed: bool = False) -> tuple[Source, CProgram]:
    """A network whose first convolution runs with the next one tile by tile, two columns at a time."""
    path = str(MODELS / "ds_cnn_kws.tflite")
    file = load_tflite(path)
    model = CModel(load_model(path), file)
    chain = next(chain for chain in chains_between(model.rows, 0, 4) if chain.width == 2)
    graph = StagedGraph(with_chains(model.rows, [chain]), pushed)
    stages = [StageChoice(0, 2, 2, backward)]
    stages += [StageChoice(i, i + 1, 1, bool(i % 2)) for i in range(2, len(graph.rows.order))]
    return read_source(file), placed_program(graph, stages, 300)


@cache
def expanded(*, backward: bool = False) -> tuple[Source, CProgram]:
    """A network whose second depthwise convolution computes the convolution before too, two columns at a time."""
    path = str(MODELS / "ds_cnn_kws.tflite")
    file = load_tflite(path)
    model = CModel(load_model(path), file)
    chain = next(c for c in chains_between(model.rows, 0, 6) if c.operators[-1] in model.expanded and c.width == 2)
    graph = StagedGraph(with_chains(model.rows, [chain]))
    stages = [StageChoice(0, 4, 2, backward)]
    stages += [StageChoice(i, i + 1, 1, bool(i % 2)) for i in range(4, len(graph.rows.order))]
    return read_source(file), placed_program(graph, stages, 300)


def changed(program: CProgram, change: Callable[[Step], Step | None]) -> Iterator[CProgram]:
    """The plan with one step changed, for every step that the change has an answer for."""
    for number, stage in enumerate(program.stages):
        for index, step in enumerate(stage.steps):
            other = change(step)
            if other is not None and other != step:
                steps = (*stage.steps[:index], other, *stage.steps[index + 1 :])
                stages = (*program.stages[:number], Stage(stage.operators, steps), *program.stages[number + 1 :])
                yield replace(program, stages=stages)


def on_reads(change: Callable[[RowsRead], RowsRead]) -> Callable[[Step], Step | None]:
    def changed_step(step: Step) -> Step | None:
        if not isinstance(step, KernelCall) or not step.reads:
            return None
        return replace(step, reads=(change(step.reads[0]), *step.reads[1:]))

    return changed_step


FORMS = [("ds_cnn_kws.tflite", 1), ("ds_cnn_kws.tflite", 4)]


@pytest.mark.parametrize("fused", [1, 2, 4])
@pytest.mark.parametrize("parts", [0, 1, 2])
@pytest.mark.parametrize("backward", [False, True])
def test_plans_are_right_in_every_form(fused: int, parts: int, backward: bool) -> None:
    verdict = rows_verdict(*planned("ds_cnn_kws.tflite", fused, parts, backward=backward))
    assert verdict.outcome == "ok", verdict.details


@pytest.mark.parametrize("backward", [False, True])
def test_tiles_are_right_in_every_form(backward: bool) -> None:
    source, program = tiled(backward=backward)
    assert any(isinstance(s, KernelCall) and s.reads[0].width for s in program.stages[0].steps)
    verdict = rows_verdict(source, program)
    assert verdict.outcome == "ok", verdict.details
    assert rows_verdict(*tiled(pushed=True)).outcome == "ok"
    assert rows_verdict(source, replace(program, kernels="cmsis-dsp")).outcome == "broken"


@pytest.mark.parametrize(
    "change",
    [
        lambda read: replace(read, rows=read.rows - 1),
        lambda read: replace(read, above=read.above + 1),
        lambda read: replace(read, address=read.address + 1),
        lambda read: replace(read, left=read.left + 1),
        lambda read: replace(read, left=read.left - 1),
        lambda read: replace(read, width=read.width - 1),
        lambda read: replace(read, width=read.width + 1),
    ],
    ids=["a row too few", "rows above off", "an element", "a column right", "a column left", "narrower", "wider"],
)
def test_faults_of_tiles_are_caught(change: Callable[[RowsRead], RowsRead]) -> None:
    source, program = tiled()
    faulty = list(changed(program, on_reads(lambda read: change(read) if read.width else read)))
    assert len(faulty) > 5
    assert all(rows_verdict(source, other).outcome == "broken" for other in faulty[::10])


@pytest.mark.slow
@pytest.mark.parametrize("backward", [False, True])
def test_an_operator_that_computes_the_one_before_is_followed(backward: bool) -> None:
    source, program = expanded(backward=backward)
    (number,) = program.scratch
    assert source.parts[0].ops[number].kind == "DEPTHWISE_CONV_2D"
    verdict = rows_verdict(source, program)
    assert verdict.outcome == "ok", verdict.details
    small = replace(program, scratch={number: program.scratch[number] - 1})
    assert "working memory" in rows_verdict(source, small).details
    for change in (
        lambda read: replace(read, address=read.address + 1),
        lambda read: replace(read, above=read.above + 1),
        lambda read: replace(read, rows=read.rows - 1),
    ):
        faulty = list(changed(program, on_reads(change)))
        assert all(rows_verdict(source, other).outcome == "broken" for other in faulty[::10])


def test_a_tile_that_is_not_computed_is_caught() -> None:
    source, program = tiled()
    stage = program.stages[0]
    for index in range(0, len(stage.steps), 7):
        steps = stage.steps[:index] + stage.steps[index + 1 :]
        other = replace(program, stages=(Stage(stage.operators, steps), *program.stages[1:]))
        assert rows_verdict(source, other).outcome == "broken"


@pytest.mark.parametrize("parts", [1, 3])
def test_rows_that_are_handed_over_are_followed(parts: int) -> None:
    verdict = rows_verdict(*planned("ds_cnn_kws.tflite", 3, parts, pushed=True))
    assert verdict.outcome == "ok", verdict.details


def test_faults_of_the_columns_of_a_single_row_are_caught(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(deep_cnn(212))
    file = load_tflite(str(path))
    graph = StagedGraph(CModel(load_model(str(path)), file).rows)
    source, program = read_source(file), placed_program(graph, [StageChoice(0, 2, 3, False)], 300)

    def shifted(step: Step) -> Step | None:
        if not isinstance(step, KernelCall) or step.operator != 1 or not step.columns:
            return None
        return replace(step, columns=(step.columns[0] + 1, step.columns[1] + 1))

    assert rows_verdict(source, program).outcome == "ok"
    faulty = list(changed(program, shifted))
    assert len(faulty) == 3
    assert all(rows_verdict(source, other).outcome == "broken" for other in faulty)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda read: replace(read, rows=read.rows - 1) if read.rows > 1 else read,
        lambda read: replace(read, above=read.above + 1),
        lambda read: replace(read, address=read.address - 1),
        lambda read: replace(read, address=read.address + 1),
    ],
    ids=["a row too few", "rows above off", "an element closer", "an element farther"],
)
@pytest.mark.parametrize(("name", "fused"), FORMS)
def test_faults_of_what_is_read_are_caught(name: str, fused: int, change: Callable[[RowsRead], RowsRead]) -> None:
    source, program = planned(name, fused)
    faulty = list(changed(program, on_reads(change)))
    assert len(faulty) > 5
    for other in faulty:
        reads = [s for stage in other.stages for s in stage.steps if isinstance(s, KernelCall)]
        if rows_verdict(source, other).outcome == "ok":
            new = next(s for s in reads if s not in [t for stage in program.stages for t in stage.steps])
            whole = source.parts[0].ops[new.operator].kind in ("SOFTMAX", "FULLY_CONNECTED", "MEAN")
            assert whole, f"{new} is taken for right"  # whose kernel looks at neither rows nor those above


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fused"), FORMS)
def test_a_result_elsewhere_is_caught(name: str, fused: int) -> None:
    source, program = planned(name, fused)

    def moved(step: Step) -> Step | None:
        if not isinstance(step, KernelCall):
            return None
        return replace(step, writes=(replace(step.writes[0], address=step.writes[0].address + 1), *step.writes[1:]))

    for other in changed(program, moved):
        assert rows_verdict(source, other).outcome == "broken"


def test_a_ring_that_is_a_row_short_is_caught() -> None:
    source, program = planned("ds_cnn_kws.tflite", 4)
    shifts = [s for stage in program.stages for s in stage.steps if isinstance(s, ValueShift)]
    assert shifts

    def shorter(step: Step) -> Step | None:
        return replace(step, nbytes=step.nbytes // 2) if isinstance(step, ValueShift) else None

    for other in changed(program, shorter):
        assert rows_verdict(source, other).outcome == "broken"


@pytest.mark.slow
def test_a_step_that_is_left_out_is_caught() -> None:
    source, program = planned("ds_cnn_kws.tflite", 4)
    for number, stage in enumerate(program.stages):
        for index in range(len(stage.steps)):
            steps = stage.steps[:index] + stage.steps[index + 1 :]
            stages = (*program.stages[:number], Stage(stage.operators, steps), *program.stages[number + 1 :])
            assert rows_verdict(source, replace(program, stages=stages)).outcome == "broken"


def test_a_buffer_that_is_too_small_and_an_output_elsewhere_are_caught() -> None:
    source, program = planned("ds_cnn_kws.tflite", 4)
    assert rows_verdict(source, replace(program, nbytes=program.nbytes - 1)).outcome == "broken"
    last = program.outputs[0]
    values: list[StoredValue] = list(program.values)
    values[last] = replace(values[last], offset=values[last].offset + 1)
    assert rows_verdict(source, replace(program, values=tuple(values))).outcome == "broken"


def test_plans_of_cmsis_nn_are_right_and_its_working_memory_is_its_own() -> None:
    source, program = planned("ds_cnn_kws.tflite", 4, 2, kernels="cmsis-dsp")
    assert rows_verdict(source, program).outcome == "ok"
    assert program.scratch
    calls = [s for stage in program.stages for s in stage.steps if isinstance(s, KernelCall) and s.scratch >= 0]
    for index in {call.operator for call in calls}:
        read = next(call for call in calls if call.operator == index).reads[0]

        def onto(step: Step, index: int = index, read: RowsRead = read) -> Step | None:
            if not isinstance(step, KernelCall) or step.operator != index:
                return None
            return replace(step, scratch=read.address)

        faulty = list(changed(program, onto))
        assert any(rows_verdict(source, other).outcome == "broken" for other in faulty)


def test_a_library_computes_several_rows_only_apart_from_what_it_reads() -> None:
    source, program = planned("ds_cnn_kws.tflite", 1)
    joined = [s for stage in program.stages for s in stage.steps if isinstance(s, KernelCall) and s.writes[0].rows > 1]
    assert joined
    assert rows_verdict(source, program).outcome == "ok"
    assert rows_verdict(source, replace(program, kernels="cmsis-dsp")).outcome == "broken"


def in_one_stage(content: bytes, folder: Path, parts: int = 1, *, backward: bool = False) -> tuple[Source, CProgram]:
    """A network all of whose operators run together, and the plan."""
    path = folder / "net.tflite"
    path.write_bytes(content)
    file = load_tflite(str(path))
    graph = StagedGraph(CModel(load_model(str(path)), file).rows)
    stage = StageChoice(0, len(graph.rows.order), parts, backward)
    return read_source(file), placed_program(graph, [stage], 300)


@pytest.mark.parametrize("parts", [1, 2, 50])
@pytest.mark.parametrize("backward", [False, True])
def test_results_with_more_columns_than_the_first_have_all_of_them(parts: int, backward: bool, tmp_path: Path) -> None:
    left, right, full = (T("int8", (1, 6, width, 5)) for width in (3, 4, 7))
    sizes, axis = T("int32", (2,), (3, 4)), T("int32", (1,), (2,))
    ops = (
        Op("HARD_SWISH", (0,), (1,)),
        Op("SPLIT_V", (1, 2, 3), (4, 5), {"NumSplits": 2}, "SplitVOptions"),
        Op("HARD_SWISH", (4,), (6,)),
        Op("CONCATENATION", (5, 6), (7,), {"Axis": 2}, "ConcatenationOptions"),
        Op("HARD_SWISH", (7,), (8,)),
    )
    tensors = (full, full, sizes, axis, left, right, left, full, full)
    source, program = in_one_stage(build(S(tensors, ops, (0,), (8,))), tmp_path, parts, backward=backward)
    verdict = rows_verdict(source, program)
    assert verdict.outcome == "ok", verdict.details
    assert program.nbytes < 2 * 6 * 7 * 5


@pytest.mark.parametrize(("kind", "other", "shape"), [
    ("ADD", (8, 3), (1, 8, 3)), ("ADD", (1, 8, 3), (1, 1, 8, 3)), ("ADD", (8, 1), (1, 8, 3)), ("ADD", (3,), (8, 3)),
    ("ADD", (4, 5, 3), (1, 4, 5, 3)), ("ADD", (4, 1, 3), (1, 4, 5, 3)), ("ADD", (1, 1, 3), (1, 4, 5, 3)),
    ("FULLY_CONNECTED", (1, 1, 8, 10), (8, 3)), ("FULLY_CONNECTED", (4, 20), (1, 4, 2, 3)),
    ("FULLY_CONNECTED", (1, 16, 10), (1, 4, 4, 3)), ("FULLY_CONNECTED", (1, 4, 4, 10), (16, 3)),
])  # fmt: skip
@pytest.mark.parametrize("backward", [False, True])
def test_operands_with_other_axes_than_the_result_are_read_where_they_stand(
    kind: str, other: tuple[int, ...], shape: tuple[int, ...], backward: bool, tmp_path: Path
) -> None:
    x, y = T("int8", other), T("int8", shape)
    options = {"FusedActivationFunction": 0}
    if kind == "ADD":
        last = Op("ADD", (4, 1), (3,), options, "AddOptions")
        ops = (Op("HARD_SWISH", (0,), (1,)), Op("HARD_SWISH", (2,), (4,)), last)
        content = build(S((x, x, y, y, y), ops, (0, 2), (3,)))
    else:
        weights = T("int8", (3, 10), [1] * 30, scales=(0.1,), zero=0)
        product = Op("FULLY_CONNECTED", (1, 2, -1), (3,), options, "FullyConnectedOptions")
        ops = (Op("HARD_SWISH", (0,), (1,)), product, Op("HARD_SWISH", (3,), (4,)))
        content = build(S((x, x, weights, y, y), ops, (0,), (4,)))
    verdict = rows_verdict(*in_one_stage(content, tmp_path, backward=backward))
    assert verdict.outcome == "ok", verdict.details


def test_sums_of_several_images_lie_where_an_operand_does(tmp_path: Path) -> None:
    """Though they are computed as a whole, since rows of images do not follow each other."""
    maps = T("int8", (2, 4, 5, 3))
    ops = (
        Op("HARD_SWISH", (0,), (1,)),
        Op("ADD", (1, 0), (2,), {"FusedActivationFunction": 0}, "AddOptions"),
        Op("HARD_SWISH", (2,), (3,)),
    )
    source, program = in_one_stage(build(S((maps,) * 4, ops, (0,), (3,))), tmp_path)
    assert program.nbytes == 2 * 2 * 4 * 5 * 3
    assert rows_verdict(source, program).outcome == "ok"


def moving(kind: str, shape: tuple[int, ...], result: tuple[int, ...], numbers: T | None, **options: int) -> bytes:
    """An operator that moves elements between two that go row by row."""
    x, y = T("int8", shape), T("int8", result)
    table = {"GATHER": "GatherOptions", "MIRROR_PAD": "MirrorPadOptions", "PACK": "PackOptions",
             "SPACE_TO_DEPTH": "SpaceToDepthOptions", "DEPTH_TO_SPACE": "DepthToSpaceOptions"}[kind]  # fmt: skip
    reads = (1, 1) if kind == "PACK" else (1,) if numbers is None else (1, 4)
    ops = (Op("HARD_SWISH", (0,), (1,)), Op(kind, reads, (2,), options, table), Op("HARD_SWISH", (2,), (3,)))
    return build(S((x, x, y, y, numbers or T("int32", (1,), (0,))), ops, (0,), (3,)))


#: Networks, and how many bytes more than the operands and results of the whole network they need at most.
MOVED = {
    "channels": (moving("GATHER", (1, 8, 4, 6), (1, 8, 4, 5), T("int32", (5,), (3, 0, 5, 2, 2)), Axis=3), 2 * 24),
    "every other row": (moving("GATHER", (1, 9, 4, 6), (1, 4, 4, 6), T("int32", (4,), (1, 3, 5, 7)), Axis=1), 4 * 24),
    "mirrored columns": (
        moving("MIRROR_PAD", (1, 8, 4, 6), (1, 8, 7, 6), T("int32", (4, 2), (0, 0, 0, 0, 1, 2, 0, 0)), Mode=0), 2 * 42),
    "packed": (moving("PACK", (1, 8, 6), (1, 8, 2, 6), None, ValuesCount=2, Axis=2), 2 * 12),
    "space": (moving("SPACE_TO_DEPTH", (1, 8, 4, 6), (1, 4, 2, 24), None, BlockSize=2), 3 * 48),
    "depth": (moving("DEPTH_TO_SPACE", (1, 8, 4, 8), (1, 16, 8, 2), None, BlockSize=2), 3 * 32),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("parts", [1, 3])
def test_what_moves_elements_goes_row_by_row(name: str, parts: int, backward: bool, tmp_path: Path) -> None:
    content, more = MOVED[name]
    source, program = in_one_stage(content, tmp_path, parts, backward=backward)
    verdict = rows_verdict(source, program)
    assert verdict.outcome == "ok", verdict.details
    ends = {program.values[v].nbytes for v in (*program.inputs, *program.outputs)}
    assert program.nbytes <= max(ends) + more
    steps = [s for stage in program.stages for s in stage.steps if isinstance(s, KernelCall) and s.operator == 1]
    assert len(steps) > 1

    def farther(step: Step) -> Step | None:
        if not isinstance(step, KernelCall) or step.operator != 1:
            return None
        read = step.reads[0]
        return replace(step, reads=(replace(read, address=read.address + 6), *step.reads[1:]))

    faulty = list(changed(replace(program, nbytes=program.nbytes + 6), farther))
    assert faulty
    assert {rows_verdict(source, other).outcome for other in faulty} == {"broken"}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("seed", few_first(range(share(12))))
def test_random_stages_of_single_operators_are_right(kind: str, seed: int, tmp_path: Path) -> None:
    """What planning takes of each kind by rows, and what it takes as a view, the proof takes too."""
    drawn, path = Drawn(seed), tmp_path / "net.tflite"
    path.write_bytes(batch([drawn_single(drawn, kind) for _ in range(6)]))
    file = load_tflite(str(path))
    program, _ = random_stages(CModel(load_model(str(path)), file), random.Random(seed), pushed=False)
    verdict = rows_verdict(read_source(file), program)
    assert verdict.outcome == "ok", verdict.details


def joined_rows(axis: int, folder: Path) -> tuple[Source, CModel, CProgram]:
    """Two pools of one map become one map of all of their rows, or of all of their columns."""
    shape = [1, 8, 8, 16]
    shape[axis] *= 2
    options = {"FilterHeight": 1, "FilterWidth": 1, "StrideH": 1, "StrideW": 1}
    small = T("int8", (1, 8, 8, 16))
    ops = (
        Op("MAX_POOL_2D", (0,), (1,), options, "Pool2DOptions"),
        Op("AVERAGE_POOL_2D", (0,), (2,), options, "Pool2DOptions"),
        Op("CONCATENATION", (1, 2), (3,), {"Axis": axis}, "ConcatenationOptions"),
    )
    path = folder / "join.tflite"
    path.write_bytes(build(S((small, small, small, T("int8", tuple(shape))), ops, (0,), (3,))))
    file = load_tflite(path)
    model = CModel(load_model(path), file)
    stages = [StageChoice(i, i + 1, 1, False) for i in range(3)]
    return read_source(file), model, placed_program(StagedGraph(model.rows), stages, 300)


def test_operands_that_are_runs_of_a_joined_map_lie_in_it(tmp_path: Path) -> None:
    source, model, program = joined_rows(1, tmp_path)
    assert program.nbytes == 2 * 8 * 8 * 16 + 8 * 16  # the result, and a row by which a pool is ahead
    assert rows_verdict(source, program).outcome == "ok"
    text = c_files(model.file, model.operators, program, CNames("net", "net.h")).source
    assert "copy_block" not in text
    assert "op_2" not in text
    source, _, program = joined_rows(2, tmp_path)
    assert program.nbytes > 2 * 8 * 8 * 16 + 8 * 16
    assert rows_verdict(source, program).outcome == "ok"


def test_an_operand_beside_its_place_in_a_joined_map_is_caught(tmp_path: Path) -> None:
    source, _, program = joined_rows(1, tmp_path)

    def moved(step: Step) -> Step | None:
        if not isinstance(step, KernelCall) or len(step.reads) < 2:
            return None
        return replace(step, writes=(replace(step.writes[0], address=step.writes[0].address + 16),))

    faulty = list(changed(replace(program, nbytes=program.nbytes + 16), moved))
    assert [rows_verdict(source, other).outcome for other in faulty] == ["broken"]


@pytest.mark.slow
def test_sums_are_computed_by_parts_of_rows() -> None:
    source, program = planned("resnet8.tflite", 4, 4)
    sums = [s for stage in program.stages for s in stage.steps if isinstance(s, KernelCall) and len(s.reads) > 1]
    assert any(call.columns for call in sums)
    assert rows_verdict(source, program).outcome == "ok"

    def farther(step: Step) -> Step | None:
        if not isinstance(step, KernelCall) or step.columns is None or len(step.reads) < 2:
            return None
        return replace(step, columns=(step.columns[0] + 1, step.columns[1] + 1))

    assert all(rows_verdict(source, other).outcome == "broken" for other in changed(program, farther))


@pytest.mark.parametrize(("name", "fused", "parts"), [("ds_cnn_kws.tflite", 4, 2), ("resnet8.tflite", 4, 1)])
def test_a_figure_shows_as_much_alive_as_there_is_memory(name: str, fused: int, parts: int) -> None:
    path = str(MODELS / name)
    _, program = planned(name, fused, parts)
    drawing = drawing_of(program, CModel(load_model(path), load_tflite(path)).rows, name)
    assert program.bound <= drawing.height <= program.nbytes
    assert drawing.peak <= program.nbytes
    assert len(drawing.problem) > len(program.values)
    assert len(drawing.ops) > sum(len(stage.steps) for stage in program.stages)


def by_rows_verdicts(single: Single) -> list[str]:
    """What the proof says of an operator that C computes in random slices of rows; nothing where it runs whole."""
    model = read_tflite(batch([single]), "one.tflite")
    operators = c_operators(model)
    if not operators[0].by_rows:
        return []
    programs = [apart(model, operators, random.Random(seed)) for seed in range(4)]
    return [
        verdict.details
        for program in programs
        if (verdict := rows_verdict(read_source(model), program)).outcome != "ok"
    ]


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("seed", few_first(range(share(12))))
def test_rows_that_c_computes_are_rows_to_the_proof(kind: str, seed: int) -> None:
    drawn = Drawn(seed)
    assert not any(by_rows_verdicts(drawn_single(drawn, kind)) for _ in range(5))


@pytest.mark.parametrize("kind", ["PAD", "PADV2"])
def test_a_map_of_one_pixel_is_padded_by_rows_of_either_axis(kind: str) -> None:
    x, y = T("int8", (1, 1, 1, 9)), T("int8", (1, 1, 3, 14))
    pads = T("int32", (4, 2), [0, 0, 0, 0, 1, 1, 3, 2])
    value = (T("int8", (1,), [-51]),) if kind == "PADV2" else ()
    assert by_rows_verdicts(Single(kind, (x, pads, *value), (y,))) == []
