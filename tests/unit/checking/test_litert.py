"""LiteRT in a process of its own: what it cannot run is a reason, never the end of the command."""

from pathlib import Path

import pytest

from modelplan.checking.verifier import litert
from modelplan.checking.verifier.program import graph_program
from modelplan.checking.verifier.values import golden_values
from modelplan.formats import load_model

MODELS = Path(__file__).resolve().parents[3] / "models"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os.abort()", r"crashed \(signal 6\)"),
        ("time.sleep(60)", "did not finish within 0.5 seconds"),
        ("int('the file is no model')", "the file is no model"),
    ],
)
def test_what_litert_cannot_run_is_a_reason(monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    program = f"import os, time; from modelplan.primitives.answering import *; answer_questions(lambda _: {code})"
    monkeypatch.setattr(litert, "_PROGRAM", ("-c", program))
    with pytest.raises(litert.LiteRTError, match=reason):
        litert.litert_outputs(b"", rounds=2, seed=0, seconds=0.5 if "sleep" in code else 60)


def test_values_of_a_tflite_file_come_from_litert() -> None:
    pytest.importorskip("ai_edge_litert")
    path = MODELS / "ds_cnn_kws.tflite"
    graph = load_model(path)
    source, values = golden_values(graph_program(graph, range(len(graph.ops))), path)
    assert source == "LiteRT"
    assert {t: len(values[t]) for op in graph.ops for t in op.outputs} == {
        t: graph.tensors[t].nbytes for op in graph.ops for t in op.outputs
    }


def test_the_model_runs_on_random_and_extreme_inputs_and_shows_its_tensors() -> None:
    pytest.importorskip("ai_edge_litert")
    model = (MODELS / "resnet8.tflite").read_bytes()
    outputs = litert.litert_outputs(model, rounds=2, seed=3)
    assert len(outputs) == 5
    assert outputs == litert.litert_outputs(model, rounds=2, seed=3)
    assert outputs[:2] != litert.litert_outputs(model, rounds=2, seed=4)[:2]
    graph = load_model(MODELS / "resnet8.tflite")
    found = litert.litert_tensors(model, graph.ops[0].outputs, seed=3)
    assert {t: array.shape for t, array in found.items()} == {t: graph.tensors[t].shape for t in graph.ops[0].outputs}
