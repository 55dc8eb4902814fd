"""Reorders every .tflite model at hand and runs it on the real tflite-micro.

    python benchmarks/reorder_tflm.py

Each model is first put into a random order that keeps data and side effects, since converters already emit good ones;
then it is reordered. All three files run on the same random inputs; heads are in bytes, TFLM's own planner.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import reporting

from modelplan import Graph, Options, plan
from modelplan.planning.schedulers.ordering_problem import precedences
from modelplan.primitives.errors import ModelPlanError
from modelplan.rewriting import reordering
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.planner import predicted_head
from modelplan.runtimes.tflm.runner import TflmRun, run_tflm, tflm_version

LEGEND = (
    "Head bytes of each file as TFLM reports them, and as predicted beside it where that differs. `scrambled` is a"
    " random order of the same operators, `reordered` what `modelplan fit --only order --alias none` makes of that."
    " `outputs`: all three gave the same bytes for the same random inputs, without a reset between two runs."
)
HEADINGS = ("model", "ops", "file", "scrambled", "reordered", "outputs", "prediction")


def random_order(graph: Graph, seed: int) -> list[int]:
    """An order that respects data and side effects."""
    rng = random.Random(seed)
    before: list[set[int]] = [set() for _ in graph.ops]
    for a, b in [*graph.dag.edges, *precedences(graph)]:
        before[b].add(a)
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(graph.ops):
        order.append(rng.choice([op for op in range(len(graph.ops)) if op not in done and before[op] <= done]))
        done.add(order[-1])
    return order


def reloaded(model: bytes, name: str) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.tflite"
        path.write_bytes(model)
        return reporting.graph_of(path)


def files_of(path: Path) -> tuple[Graph, list[bytes]]:
    """The graph, and the file as it is, scrambled, and reordered from there."""
    model = path.read_bytes()
    graph = reloaded(model, path.stem)
    scrambled = reordering.reordered(model, graph, random_order(graph, 1))
    again = reloaded(scrambled, path.stem)
    order = plan(again, Options(runtime="tflm", alias="none")).schedule.order
    better = reordering.reordered(scrambled, again, order)
    reordering.check_same(again, reloaded(better, path.stem), order)
    return graph, [model, scrambled, better]


def row(name: str, path: Path) -> Sequence[object]:
    try:
        graph, files = files_of(path)
        runs = [run_tflm(model, rounds=1) for model in files]
    except ModelPlanError as problem:
        words = str(problem).replace(str(path), name).replace("|", "/").replace("\n", " ")
        return name, "", "", "", "", f"not run: {words[:100]}", ""
    heads = [predicted_head(read_tflite(model, name)) for model in files]
    return name, len(graph.ops), *verdict(runs, heads)


def verdict(runs: Sequence[TflmRun], heads: Sequence[int]) -> Iterator[str]:
    yield from (f"{run.head:,}" for run in runs)
    yield "bit-equal" if len({run.outputs for run in runs}) == 1 else "**differ**"
    yield "as predicted" if [run.head for run in runs] == list(heads) else f"**{list(heads)}**"


PARSER = reporting.command_line(__file__, __doc__, "reorder_tflm.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    rows = (row(name, path) for name, path in reporting.tflite_files(arguments.corpus))
    lines = [LEGEND, "", *reporting.table(HEADINGS, rows, "<" * len(HEADINGS))]
    first = reporting.made_by(PARSER, arguments, f" with tflite-micro {tflm_version()}")
    reporting.save(arguments.output, first, "Reordered models on tflite-micro", lines)


if __name__ == "__main__":
    main()
