"""The verifier sees every kind of mistake, at the operator that suffers from it, by the level that should."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tflm_models
from graphs import graph

from modelplan import BrokenPlanError, Graph, Merge, ModelError, Options, Placement, Plan, Problem, load, plan
from modelplan.checking.verifier.addresses import AddressLayout, Scratch
from modelplan.checking.verifier.program import file_program, graph_program
from modelplan.checking.verifier.proof import prove
from modelplan.checking.verifier.replay import replay
from modelplan.checking.verifier.static import check_static
from modelplan.checking.verifier.subject import offline_subject, plan_subject, table_subject
from modelplan.checking.verifier.values import golden_values, replay_golden
from modelplan.formats import load_model
from modelplan.formats.tflite import flatbuffer as fb
from modelplan.model import BufferKind, Member
from modelplan.rewriting.packing import answer, question_of
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor, read_tflite
from modelplan.runtimes.tflm.metadata import write_plan


def test_a_chain_of_any_length_is_replayed_step_by_step() -> None:
    """Only subgraphs that call each other again and again make a run too long."""
    count = 1300
    tensors = tuple(tflm_models.T("int8", (1,)) for _ in range(count + 1))
    ops = tuple(tflm_models.Op("RELU", (i,), (i + 1,)) for i in range(count))
    model = read_tflite(tflm_models.build(tflm_models.S(tensors, ops, (0,), (count,))), "chain")
    assert len(file_program(model).steps) == count


def test_constants_among_the_inputs_of_an_onnx_file_keep_their_values(tmp_path: Path) -> None:
    """Old files list initializers as inputs, for a caller that wants to replace them."""
    import onnx
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

    added = np.array([1, 2, 3, 4], dtype=np.float32)
    inputs = [make_tensor_value_info(name, 1, [4]) for name in "xw"]
    nodes = [make_node("Add", ["x", "w"], ["t"]), make_node("Relu", ["t"], ["y"])]
    weights = onnx.numpy_helper.from_array(added, "w")
    drawn = make_graph(nodes, "old", inputs, [make_tensor_value_info("y", 1, [4])], [weights])
    path = tmp_path / "old.onnx"
    onnx.save(make_model(drawn, opset_imports=[make_opsetid("", 18)], ir_version=9), path)
    loaded = load(path)
    assert isinstance(loaded, Graph)
    program = graph_program(loaded, range(2))
    _, values = golden_values(program, path)
    x, y = (values[program.names.index(name)].tobytes() for name in "xy")
    assert np.array_equal(np.frombuffer(y, np.float32), np.maximum(np.frombuffer(x, np.float32) + added, 0))


def diamond() -> Graph:
    """x -> a -> b -> c, where d needs both a and c."""
    return graph(
        """
        x   -> a : CONV_2D
        a   -> b : CONV_2D
        b   -> c : CONV_2D
        a c -> d : ADD
        """,
        {"x": 64, "a": 64, "b": 64, "c": 64, "d": 64},
        inputs="x",
        outputs="d",
    )


def made(model: Graph, alias: str = "none") -> Plan:
    return plan(model, Options(runtime="tflm", schedule="file", alias=alias, allocator="tflm-greedy"))


def moved(one: Plan, name: str, offset: int) -> Plan:
    """The plan with the buffer `name` at another offset."""
    offsets = one.placement.offsets.copy()
    offsets[one.problem.names.index(name)] = offset
    return replace(one, placement=Placement(offsets))


def layout_of(one: Plan) -> AddressLayout:
    return plan_subject(one).layout


def test_a_sound_plan_passes() -> None:
    one = made(diamond())
    prove(plan_subject(one))
    assert replay(plan_subject(one).program, layout_of(one)) == 8


# --- the nine mutations -------------------------------------------------------------------------------------------


def test_an_offset_shifted_by_16() -> None:
    one = made(diamond())
    names, offsets = one.problem.names, one.placement.offsets
    shifted = moved(one, "a", int(offsets[names.index("a")]) + (16 if offsets[names.index("a")] == 0 else -16))
    with pytest.raises(BrokenPlanError, match=r"op \d \w+ reads tensor 1 'a' bytes \d+-\d+, overwritten at op \d by"):
        prove(plan_subject(shifted))
    with pytest.raises(BrokenPlanError, match=r"where tensor"):
        check_static(plan_subject(shifted).program, layout_of(shifted))


def test_two_ops_swapped() -> None:
    one = made(diamond())
    swapped = replace(one, schedule=replace(one.schedule, order=(0, 2, 1, 3)))
    with pytest.raises(BrokenPlanError, match=r"op 2 CONV_2D reads tensor 2 'b' before anything writes it"):
        prove(plan_subject(swapped))


def test_a_reader_dropped() -> None:
    """Planned as if the last operator did not read a, whose bytes c may then take."""
    whole = diamond()
    ops = (*whole.ops[:3], replace(whole.ops[3], inputs=(3,)))
    blind = made(replace(whole, ops=ops))
    with pytest.raises(BrokenPlanError, match=r"op 3 ADD reads tensor 1 'a' bytes \d+-\d+, overwritten at op 2 by"):
        prove(plan_subject(replace(blind, graph=whole)))


def test_a_size_shrunk() -> None:
    one = made(diamond())
    size = one.problem.size.copy()
    size[one.problem.names.index("b")] = 48
    shrunk = replace(one, problem=replace(one.problem, size=size))
    with pytest.raises(BrokenPlanError, match=r"tensor 2 'b' .* reserves 48 bytes, it needs 64"):
        prove(plan_subject(shrunk))


def test_a_false_view() -> None:
    """TRANSPOSE moves its bytes: a plan may not call its output a view."""
    model = graph(
        "x -> a : CONV_2D\n a -> b : TRANSPOSE\n a b -> c : ADD",
        {"x": 16, "a": 64, "b": 64, "c": 64}, inputs="x", outputs="c",
    )  # fmt: skip
    false = _shared(made(model), "b", "a", Merge(2, 1, 1, "view", 64))
    with pytest.raises(BrokenPlanError, match=r"op 1 TRANSPOSE .*tensor 2 'b'.* cannot work in place"):
        prove(plan_subject(false))
    golden = {t: np.full(v.nbytes, t, dtype=np.uint8) for t, v in enumerate(model.tensors)}
    with pytest.raises(BrokenPlanError, match=r"op 2 ADD reads tensor 1 'a' bytes .* which hold other values"):
        replay_golden(plan_subject(false), golden)


def test_a_convolution_in_place() -> None:
    one = made(diamond())
    false = _shared(one, "b", "a", Merge(2, 1, 1, "overwrite", 64))
    with pytest.raises(BrokenPlanError, match=r"op 1 CONV_2D reads tensor 1 'a' .*CONV_2D cannot work in place there"):
        prove(plan_subject(false))


def _shared(one: Plan, name: str, into: str, merge: Merge) -> Plan:
    """The plan in which one buffer lies on another's bytes and says so."""
    problem = one.problem
    at = problem.names.index(into)
    offset = int(one.placement.offsets[at])
    return replace(moved(one, name, offset), merges=(*one.merges, merge))


def packed(corpus: Path, name: str) -> tuple[FileModel, list[int]]:
    path = corpus / "tflite" / f"{name}.tflite"
    model = read_tflite(path.read_bytes(), path.name)
    return model, list(answer(question_of(model, load_model(path), "none")).offsets)


def test_minus_two_as_offset(corpus: Path) -> None:
    model, offsets = packed(corpus, "kws_ref_model")
    first = next(i for i, offset in enumerate(offsets) if offset >= 0)
    offsets[first] = -2
    with pytest.raises(BrokenPlanError, match=rf"tensor {first} .* offset -2, expected at least 0"):
        check_offline(model, offsets)


def test_a_misaligned_offset(corpus: Path) -> None:
    model, offsets = packed(corpus, "kws_ref_model")
    last = max(range(len(offsets)), key=offsets.__getitem__)
    offsets[last] += 4
    with pytest.raises(BrokenPlanError, match=rf"tensor {last} .* is not a multiple of 16"):
        check_offline(model, offsets)


def test_a_wrong_tensor_count(corpus: Path) -> None:
    model, offsets = packed(corpus, "kws_ref_model")
    words = struct.pack(f"<{2 + len(offsets)}i", 0, 1, len(offsets) - 1, *offsets[:-1])
    broken = read_tflite(fb.set_metadata(model.data, planner.METADATA, words), "broken")
    with pytest.raises(BrokenPlanError, match=r"holds 34 offsets .* expected 35"):
        offline_subject(broken)


def check_offline(model: FileModel, offsets: list[int]) -> None:
    subject = offline_subject(read_tflite(write_plan(model, offsets), "mutant"))
    check_static(subject.program, subject.layout)


# --- what else it must see ----------------------------------------------------------------------------------------


def test_the_aliasing_of_litert_is_rejected(corpus: Path) -> None:
    """X -> reshape -> R -> reshape -> S, then T = S + u over S while R is still to be read."""
    path = corpus / "tflite" / "litert_alias_bug.tflite"
    model = read_tflite(path.read_bytes(), path.name)
    offsets = list(answer(question_of(model, load_model(path), "none")).offsets)
    ops = model.subgraphs[0].ops
    views = [op for op in ops if op.kind == "RESHAPE"]
    source, view = views[0].inputs[0], views[1].outputs[0]
    writer = next(op for op in ops if op.kind == "ADD" and view in op.inputs)
    for op in views:
        offsets[op.outputs[0]] = offsets[source]
    offsets[writer.outputs[0]] = offsets[source]
    subject = offline_subject(read_tflite(write_plan(model, offsets), "litert"))
    with pytest.raises(BrokenPlanError, match=r"op \d MUL reads tensor 4 'R' bytes \d+-\d+, overwritten at op \d by"):
        prove(subject)


def test_state_damaged_by_one_run_shows_in_the_next() -> None:
    main = FileSubgraph(
        (_tensor("x"), _tensor("s", variable=True), _tensor("y")),
        (FileOp("SVDF", (0, 1), (2,)),),
        (0,),
        (2,),
    )
    program = file_program(FileModel("m", b"", (main,)))
    with pytest.raises(BrokenPlanError, match=r"op 0 SVDF reads tensor 1 's' bytes 0-15, overwritten at the caller by"):
        replay(program, AddressLayout({0: 0, 1: 0, 2: 16}))
    assert replay(program, AddressLayout({0: 0, 1: 16, 2: 32})) == 2


def _tensor(name: str, *, variable: bool = False) -> FileTensor:
    return FileTensor(name, 9, (16,), 16, constant=False, variable=variable)


def test_scratch_over_an_operand() -> None:
    program = graph_program(diamond(), range(4))
    apart = {t: 64 * t for t in range(5)}
    assert replay(program, AddressLayout(apart, scratch=(Scratch(1, 320, 400),)))
    with pytest.raises(BrokenPlanError, match=r"op 1 CONV_2D uses bytes 64-99 as scratch, which hold its tensor 1 'a'"):
        replay(program, AddressLayout(apart, scratch=(Scratch(1, 64, 100),)))
    with pytest.raises(
        BrokenPlanError, match=r"op 3 ADD reads tensor 1 'a' bytes 64-99, overwritten at op 2 .*scratch"
    ):
        replay(program, AddressLayout(apart, scratch=(Scratch(2, 64, 100),)))


def test_outputs_of_one_operator_on_the_same_bytes() -> None:
    model = graph("x -> a b : TOPK_V2", {"x": 16, "a": 16, "b": 16}, inputs="x", outputs="a b")
    with pytest.raises(BrokenPlanError, match=r"writes tensor 2 'b' and tensor 1 'a' to the same bytes 24-31"):
        replay(graph_program(model, [0]), AddressLayout({0: 0, 1: 16, 2: 24}))


def test_in_place_add_is_fine_once_its_operand_is_dead() -> None:
    program = graph_program(diamond(), range(4))
    address = {0: 0, 1: 64, 2: 0, 3: 128, 4: 64}
    assert check_static(program, AddressLayout(address)) == 5
    assert replay(program, AddressLayout(address)) == 8


def test_branches_share_bytes_and_loops_run_twice() -> None:
    branch = FileSubgraph((_tensor("i"), _tensor("o")), (FileOp("TRANSPOSE", (0,), (1,)),), (0,), (1,))
    for kind, reads in (("IF", (0, 1)), ("WHILE", (1,))):
        main = FileSubgraph(
            (_tensor("p"), _tensor("x"), _tensor("y")), (FileOp(kind, reads, (2,), calls=(1, 2)),), (0, 1), (2,)
        )
        model = FileModel("m", b"", (main, branch, branch))
        rows = planner.requests(model)
        places = planner.greedy_offsets(rows)
        address = {row.tensor: at for row, at in zip(rows, places, strict=True)}
        program = file_program(model)
        assert check_static(program, AddressLayout(address, 16))
        assert replay(program, AddressLayout(address, 16))
        with pytest.raises(BrokenPlanError):
            replay(
                program,
                AddressLayout(address | {4: address[1]}, 16)
                if kind == "IF"
                else AddressLayout(dict.fromkeys(address, 0)),
            )


def test_a_file_without_a_plan_is_not_a_broken_plan(corpus: Path) -> None:
    path = corpus / "tflite" / "kws_ref_model.tflite"
    with pytest.raises(ModelError, match=r"no metadata OfflineMemoryAllocation in it"):
        offline_subject(read_tflite(path.read_bytes(), path.name))


def test_a_plan_of_vela_passes(corpus: Path) -> None:
    path = corpus / "tflite" / "person_detect_vela.tflite"
    subject = offline_subject(read_tflite(path.read_bytes(), path.name))
    prove(subject)
    assert subject.offline is not None
    assert subject.offline.offsets == (0, -1, -1, 0, 0, 0)


def test_a_table_of_buffers_covers_views_without_rows() -> None:
    model = graph("x -> a : CONV_2D\n a -> b : RESHAPE\n b -> y : CONV_2D", {"x": 16, "a": 32, "b": 32, "y": 16},
                  inputs="x", outputs="y")  # fmt: skip
    problem = Problem(("x", "a", "y"), np.array([16, 32, 16]), np.array([0, 0, 2]), np.array([1, 3, 3]))
    prove(table_subject(model, problem, Placement(np.array([0, 16, 0])), RUNTIMES["generic"]))
    with pytest.raises(BrokenPlanError, match=r"row 'z' names 0 tensors"):
        table_subject(
            model, replace(problem, names=("x", "z", "y")), Placement(np.array([0, 16, 0])), RUNTIMES["generic"]
        )


def test_rows_of_a_table_keep_their_addresses_where_an_operator_could_share_them() -> None:
    """The RESHAPE copies here; only a tensor without a row gets the address that its operator implies."""
    model = graph("x -> a : CONV_2D\n a -> b : RESHAPE\n b -> y : CONV_2D", {"x": 16, "a": 32, "b": 32, "y": 16},
                  inputs="x", outputs="y")  # fmt: skip
    problem = Problem(tuple("xaby"), np.array([16, 32, 32, 16]), np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
    subject = table_subject(model, problem, Placement(np.array([0, 16, 48, 0])), RUNTIMES["generic"])
    assert dict(subject.layout.address) == {0: 0, 1: 16, 2: 48, 3: 0}
    for without, at in (("a", 48), ("b", 16)):
        kept = ["xaby".index(name) for name in "xaby" if name != without]
        part = Problem(tuple("xaby"[i] for i in kept), problem.size[kept], problem.start[kept], problem.end[kept])
        subject = table_subject(model, part, Placement(np.array([0, 16, 48, 0])[kept]), RUNTIMES["generic"])
        assert [subject.layout.address[t] for t in (1, 2)] == [at, at]


def test_a_row_is_scratch_by_its_kind_and_never_by_its_name() -> None:
    model = graph("x -> y : CONV_2D", {"x": 16, "y": 16}, inputs="x", outputs="y")
    size, start, end = np.array([16, 16, 8]), np.array([0, 0, 0]), np.array([1, 1, 1])
    problem = Problem(("x", "y", "scratch of op 0 CONV_2D"), size, start, end)
    apart, over = Placement(np.array([0, 16, 32])), Placement(np.array([0, 16, 8]))
    with pytest.raises(BrokenPlanError, match=r"names 0 tensors of drawn, expected 1, or 'scratch' in a column 'kind'"):
        table_subject(model, problem, apart, RUNTIMES["generic"])
    told = replace(problem, kinds=(BufferKind.TENSOR, BufferKind.TENSOR, BufferKind.SCRATCH))
    prove(table_subject(model, told, apart, RUNTIMES["generic"]))
    with pytest.raises(BrokenPlanError, match="scratch"):
        prove(table_subject(model, told, over, RUNTIMES["generic"]))


def test_members_inside_a_buffer_are_checked_where_they_lie() -> None:
    model = graph("x -> a : CONV_2D\n x -> b : CONV_2D\n a b -> c : CUSTOM", {"x": 16, "a": 16, "b": 16, "c": 16},
                  inputs="x", outputs="c")  # fmt: skip
    one = made(model)
    members = ((Member(0),), (Member(1), Member(2, 8)), (Member(3),))
    size, start, end = np.array([16, 32, 16]), np.array([0, 0, 2]), np.array([2, 3, 3])
    problem = Problem(("x", "a", "c"), size, start, end, members=members)
    with pytest.raises(BrokenPlanError, match=r"op 2 CUSTOM reads tensor 1 'a' bytes 24-31, overwritten at op 1 by"):
        prove(plan_subject(replace(one, problem=problem, placement=Placement(np.array([0, 16, 48])))))
