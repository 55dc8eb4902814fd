"""The figures of every real model at hand, line by line: a change is a decision, never an accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelplan import Graph, load, plan
from modelplan.answers.summary import summary

GOLDEN = Path(__file__).parent / "figures.txt"
STATIC = ("bert_like", "bert_like_dynamo", "decoder_kv", "decoder_kv_dynamo")


def line(path: Path) -> str:
    graph = load(path)
    assert isinstance(graph, Graph)
    figures = summary(plan(graph))
    return (
        f"{path.name}: ops {len(graph.ops)}, arena {figures.planned}, bound {figures.lower_bound},"
        f" peak at step {figures.peak_step} {figures.peak_op}"
    )


@pytest.mark.slow
def test_the_figures_of_real_models(light: Path, models: Path, request: pytest.FixtureRequest) -> None:
    files = sorted(light.glob("*.onnx")) + sorted(
        p for p in models.iterdir() if p.suffix in (".onnx", ".tflite") and p.stem not in STATIC
    )
    assert len(files) >= 18
    found = "".join(f"{line(path)}\n" for path in files)
    if request.config.getoption("--update"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("name", "height"),
    [("person_detect", 55296), ("vww_96_int8", 73728), ("pretrainedResnet_quant", 49152), ("kws_ref_model", 16000)],
)
def test_the_heights_that_tflm_reports(corpus: Path, name: str, height: int) -> None:
    """Figures of corpus/README.md, as tflite-micro itself prints them after loading."""
    from modelplan import Options
    from modelplan import height as height_of

    graph = load(corpus / "tflite" / f"{name}.tflite")
    assert isinstance(graph, Graph)
    answer = plan(graph, Options(runtime="tflm", schedule="file", alias="none", allocator="tflm-greedy"))
    assert height_of(answer.problem, answer.placement) == height
