"""Reorders every .tflite model at hand and runs it on the real tflite-micro: reports/reorder_tflm.md.

    python benchmarks/reorder_tflm.py

Each model is first put into a random order that keeps data and side effects, since converters already emit good ones;
then it is reordered. All three files run on the same random inputs; heads are in bytes, TFLM's own planner.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from modelplan import Graph, Options, load, plan
from modelplan.errors import ModelPlanError
from modelplan.rewriting import reordering
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.planner import predicted_head
from modelplan.runtimes.tflm.runner import Run, run_tflm, tflm_version
from modelplan.schedulers.side_effects import precedences

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus"))
HEAD = (
    "# Reordered models on tflite-micro\n\nMade by `python benchmarks/reorder_tflm.py` with tflite-micro {version}.\n\n"
    "Head bytes of each file as TFLM reports them, and as predicted beside it where that differs. `scrambled` is a"
    " random order of the same operators, `reordered` what `modelplan reorder --alias none` makes of that."
    " `outputs`: all three gave the same bytes for the same random inputs, without a reset between two runs.\n\n"
    "| model | ops | file | scrambled | reordered | outputs | prediction |\n|---|---|---|---|---|---|---|\n"
)


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
        graph = load(path)
        assert isinstance(graph, Graph)
        return graph


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


def row(name: str, path: Path) -> str:
    try:
        graph, files = files_of(path)
        runs = [run_tflm(model, rounds=1) for model in files]
    except ModelPlanError as problem:
        words = str(problem).replace(str(path), name).replace("|", "/").replace("\n", " ")
        return f"| {name} | | | | | not run: {words[:100]} | |\n"
    heads = [predicted_head(read_tflite(model, name)) for model in files]
    return f"| {name} | {len(graph.ops)} | {verdict(runs, heads)} |\n"


def verdict(runs: Sequence[Run], heads: Sequence[int]) -> str:
    same = "bit-equal" if len({run.outputs for run in runs}) == 1 else "**differ**"
    right = "as predicted" if [run.head for run in runs] == list(heads) else f"**{list(heads)}**"
    return " | ".join([*(f"{run.head:,}" for run in runs), same, right])


def main() -> None:
    paths = [(str(p.relative_to(CORPUS / "tflite")), p) for p in sorted((CORPUS / "tflite").rglob("*.tflite"))]
    paths += [(f"models/{p.name}", p) for p in sorted((ROOT / "models").glob("*.tflite"))]
    text = HEAD.format(version=tflm_version()) + "".join(row(name, path) for name, path in paths)
    (ROOT / "reports" / "reorder_tflm.md").write_text(text)
    print("reports/reorder_tflm.md")


if __name__ == "__main__":
    main()
