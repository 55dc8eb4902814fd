"""Models that keep values in variables, which another subgraph gives their first values: wake words that stream."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from modelplan import BrokenPlanError, FitRequest, fit
from modelplan.checking.verifier.c_rows import rows_verdict
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.checking.verifier.rewrites.reading import read_source
from modelplan.formats import load_model
from modelplan.formats.tflite.flatbuffer import reorder_operators
from modelplan.model.c_program import StageChoice
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.rows.placing_rows import placed_program
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.rewriting.stripes.ordering import late_reads, late_writes
from modelplan.runtimes.tflm.file import load_tflite, read_tflite


def model_of(corpus: Path, name: str) -> bytes:
    """A wake word's file."""
    return (corpus / "tflite" / "wakeword" / f"{name}.tflite").read_bytes()


@pytest.mark.parametrize(("name", "bound"), [("okay_nabu", 2_880), ("alexa", 2_624), ("vad", 1_200)])
def test_wake_words_come_down_to_their_bound(corpus: Path, name: str, bound: int) -> None:
    """A depthwise convolution whose kernel copies its operand goes in blocks of channels."""
    path = corpus / "tflite" / "wakeword" / f"{name}.tflite"
    ladder = fit(FitRequest(path, kernels="cmsis-dsp", objective="head"))
    assert ladder.chosen
    assert any("blocks of channels" in stretch for stretch in ladder.chosen.stretches)
    assert [verdict.outcome for verdict in ladder.proof[:2]] == ["ok", "ok"]
    assert ladder.chosen.head == ladder.bound == bound


def kinds(data: bytes) -> list[str]:
    """The kinds of the operators of the main graph."""
    return [op.kind for op in read_tflite(data, "file").subgraphs[0].ops]


def with_order(data: bytes, move: int, before: int) -> bytes:
    """The file with one operator moved before another."""
    order = list(range(len(kinds(data))))
    order.insert(order.index(before), order.pop(move))
    return reorder_operators(data, order)


def test_variables_may_be_read_in_any_order(corpus: Path) -> None:
    data = model_of(corpus, "okay_nabu")
    first = kinds(data).index("READ_VARIABLE")
    swapped = with_order(data, first + 1, first)
    assert [verdict.outcome for verdict in prove_rewrite(data, swapped)] == ["ok", "ok"]


def test_a_read_stays_before_its_assignment(corpus: Path) -> None:
    data = model_of(corpus, "okay_nabu")
    ops = read_tflite(data, "file").subgraphs[0].ops
    assign = next(i for i, op in enumerate(ops) if op.kind == "ASSIGN_VARIABLE")
    read = next(i for i, op in enumerate(ops) if op.kind == "READ_VARIABLE" and op.inputs[0] == ops[assign].inputs[0])
    graph = load_model(corpus / "tflite" / "wakeword" / "okay_nabu.tflite")
    order = late_reads(graph, range(len(graph.ops)))
    assert order.index(read) < order.index(assign)
    assert [
        order.index(i) + 1 in {order.index(r) for r in graph.readers[graph.ops[i].outputs[0]]} for i in (read,)
    ] == [True]


@pytest.mark.parametrize("name", ["okay_nabu", "alexa", "vad"])
def test_what_is_assigned_is_made_when_nothing_else_reads_its_operand(corpus: Path, name: str) -> None:
    graph = load_model(corpus / "tflite" / "wakeword" / f"{name}.tflite")
    order = late_writes(graph, late_reads(graph, graph.producers_first))
    step = {op: place for place, op in enumerate(order)}
    assert sorted(order) == list(graph.producers_first)
    assert all(step[producer] < step[reader] for producer, reader in graph.flows)
    for index, op in enumerate(graph.ops):
        if op.kind == "ASSIGN_VARIABLE":
            handle, value = op.reads
            assert all(step[reader] <= step[index] for reader in graph.readers[handle])
            made_from = graph.ops[graph.producers[value]].reads[0]
            assert all(step[reader] < step[index] for reader in graph.readers[made_from])


def test_in_plain_c_a_variable_is_not_read_after_its_assignment(corpus: Path) -> None:
    path = str(corpus / "tflite" / "wakeword" / "vad.tflite")
    model = CModel(load_model(path), load_tflite(path))
    assigned = next(i for i in model.rows.order if model.graph.ops[i].kind == "ASSIGN_VARIABLE")
    for late in (False, True):
        order = list(model.rows.order)
        read = next(i for i in order if set(model.graph.ops[i].reads) & set(model.graph.ops[assigned].reads))
        if late:
            order.append(order.pop(order.index(read)))
        graph = StagedGraph(replace(model.rows, order=tuple(order)))
        program = placed_program(graph, [StageChoice(i, i + 1, 0) for i in range(len(order))], 10)
        verdict = rows_verdict(read_source(model.file), program)
        assert (verdict.outcome == "broken") == late
        assert f"op {assigned} ASSIGN_VARIABLE" in verdict.details or not late


def test_a_value_that_is_assigned_before_another_variable_is_read_is_no_fault(corpus: Path) -> None:
    data = model_of(corpus, "alexa")
    ops = read_tflite(data, "file").subgraphs[0].ops
    reads = [i for i, op in enumerate(ops) if op.kind == "READ_VARIABLE"]
    later = next(i for i in reads if any(op.kind == "ASSIGN_VARIABLE" for op in ops[:i]))
    first = next(i for i, op in enumerate(ops) if op.kind == "ASSIGN_VARIABLE")
    assert [verdict.outcome for verdict in prove_rewrite(data, with_order(data, later, first))] == ["ok", "ok"]


def test_another_first_value_is_a_fault(corpus: Path) -> None:
    data = bytearray(model_of(corpus, "okay_nabu"))
    tensors = read_tflite(bytes(data), "file").subgraphs[1].tensors
    start, length = max((t.content for t in tensors if t.constant), key=lambda content: content[1])
    data[start + length // 2] ^= 1
    with pytest.raises(BrokenPlanError, match="keep values between runs"):
        prove_rewrite(model_of(corpus, "okay_nabu"), bytes(data))


def test_an_initialisation_behind_a_use_is_not_proved(corpus: Path) -> None:
    data = model_of(corpus, "okay_nabu")
    late = with_order(data, 0, kinds(data).index("READ_VARIABLE") + 2)
    assert kinds(late).index("CALL_ONCE") > kinds(late).index("READ_VARIABLE")
    assert [verdict.outcome for verdict in prove_rewrite(data, late)] == ["unproved"]
