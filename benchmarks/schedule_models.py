"""The scheduler on every model of the onnx package, of the corpus and of this project.

    python benchmarks/schedule_models.py

Peaks, bounds and states are the same on every machine; seconds are one core's of this one, CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import reporting
from timed_orders import problem_of, proof, timed

from modelplan.planning.schedulers import BEST_STEPS
from modelplan.primitives.errors import ModelPlanError

#: What models/ leaves open.
DIMS = {
    "bert_like.onnx": ("batch=1", "sequence=128"),
    "bert_like_dynamo.onnx": ("batch=1", "sequence=128"),
    "decoder_kv.onnx": ("batch=1", "sequence=1", "past_sequence=127"),
    "decoder_kv_dynamo.onnx": ("batch=1", "sequence=1", "past_sequence=127"),
}


MODEL_HEAD = (
    "model", "ops", "file order", "peak", "saved", "flow bound", "proved", "certificate", "found by", "states", "s",
)  # fmt: skip


def model_row(name: str, path: Path) -> list[str]:
    try:
        graph = reporting.graph_of(path, DIMS.get(path.name, ()))
    except ModelPlanError as problem:
        words = str(problem).replace(str(path), name).replace("|", "/").replace("\n", " ")
        return [name, "", "", "", "", "", "", f"refused: {words[:90]}", "", "", ""]
    found = timed(problem_of(graph, alias="views"), BEST_STEPS)
    answer, before = found.answer, found.cheap["file"]
    return [
        name,
        str(len(graph.ops)),
        f"{before:,}",
        f"{answer.peak:,}",
        f"{1 - answer.peak / before:.1%}" if before else "",
        f"{answer.flow_bound:,}",
        f"{answer.lower_bound:,}",
        proof(answer),
        answer.found_by,
        f"{answer.states:,}",
        f"{found.seconds:.3f}",
    ]


LEGEND = (
    "Bytes, views shared, each format's usual runtime; open extents bound to batch 1, 128 tokens. Order helps"
    " where branches or cells give it a choice; a chain, DenseNet or U-Net has none, and its peak is the"
    " working set of one operator."
)


def page(corpus: Path) -> Iterator[str]:
    groups = [
        ("ONNX light models", reporting.LIGHT, reporting.light_models()),
        ("The corpus", corpus / "tflite", sorted((corpus / "tflite").rglob("*.tflite"))),
        ("models/", reporting.ROOT / "models", reporting.own_models(".onnx", ".tflite")),
    ]
    yield LEGEND
    for title, folder, paths in groups:
        yield from ("", f"## {title}", "")
        rows = (model_row(str(path.relative_to(folder)), path) for path in paths)
        yield from reporting.table(MODEL_HEAD, rows, "<" * len(MODEL_HEAD))


PARSER = reporting.command_line(__file__, __doc__, "schedule_models.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Orders of real models", page(arguments.corpus))


if __name__ == "__main__":
    main()
