"""The scheduler on every model of the onnx package, of the corpus and of this project, and on generated families.

    python benchmarks/schedules.py [--steps N]

The families stand beside the figures of the prototype that the scheduler follows. Peaks, bounds and states are the
same on every machine; seconds are one core's of this one, CPU time.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import families
import reporting

from modelplan import Graph, runtimes
from modelplan.checking.referee import check_flow
from modelplan.model import OrderProblem
from modelplan.planning import aliasing
from modelplan.planning.schedulers import BEST_STEPS
from modelplan.planning.schedulers.order_core import Effort, OrderAnswer, solve
from modelplan.planning.schedulers.ordering_problem import order_problem
from modelplan.primitives.errors import ModelPlanError

#: What models/ leaves open.
DIMS = {
    "bert_like.onnx": ("batch=1", "sequence=128"),
    "bert_like_dynamo.onnx": ("batch=1", "sequence=128"),
    "decoder_kv.onnx": ("batch=1", "sequence=1", "past_sequence=127"),
    "decoder_kv_dynamo.onnx": ("batch=1", "sequence=1", "past_sequence=127"),
}

#: What the table of the reference says of the families: least peak or its bounds in KB, and seconds.
LISTED = {
    "inception-like": ("1109", 0.00),
    "DenseNet-121": ("1806", 0.00),
    "U-Net": ("1049", 0.00),
    "BiFPN x6": ("697", 0.00),
    "NASNet-A cifar": ("459", 0.8),
    "NASNet-A N=4": ("1932", 3.5),
    "DARTS 20 cells": ("369", 0.6),
    "AmoebaNet-like": ("295", 0.1),
    "RandWire WS(32,4,0.75) seed 0": ("280", 0.65),
    "RandWire WS(32,4,0.75) seed 1": ("240", 0.65),
    "RandWire WS(32,4,0.75) seed 2": ("300", 0.65),
    "RandWire 3 stages": ("240", 0.25),
    "BERT 2 x 4 heads": ("197", 0.00),
    "BERT 12 x 12 heads": ("590", 3.1),
    "RandWire WS(48,4,0.75) seed 0": ("359 to 399, open", None),
    "RandWire WS(64,4,0.75) seed 0": ("359 to 559, open", None),
    "RandWire WS(64,6,0.75) seed 0": ("519 to 539, open", None),
}


@dataclass(frozen=True)
class Timed:
    """An answer, its CPU seconds, and the peaks of the cheap orders."""

    answer: OrderAnswer
    seconds: float
    cheap: dict[str, int]


def timed(problem: OrderProblem, steps: int) -> Timed:
    """The answer of `best` within `steps`, its witness checked."""
    cheap = {
        "file": solve(problem, Effort("file", steps=0)).peak,
        "list": solve(problem, Effort("list", steps=0)).peak,
        "beam": solve(problem, Effort("beam", width=16, steps=BEST_STEPS)).peak,
    }
    start = time.process_time()
    answer = solve(problem, Effort("best", search=True, steps=steps))
    seconds = time.process_time() - start
    check_flow(problem, answer.witness)
    return Timed(answer, seconds, cheap)


def proof(answer: OrderAnswer) -> str:
    """How good the peak is, in the words of `analyze`."""
    if answer.peak == answer.lower_bound:
        return "optimal (flow certificate)" if answer.flow_bound == answer.peak else "optimal (search)"
    return f"within {answer.peak / answer.lower_bound - 1:.1%}"


def problem_of(graph: Graph, *, alias: str = "none", runtime: str | None = None) -> OrderProblem:
    return order_problem(graph, aliasing.storages(graph, alias), runtimes.runtime(runtime, graph.format))


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


def family_row(make: Callable[[], Graph], steps: int, *, listed: bool = True) -> list[str]:
    graph = make()
    found = timed(problem_of(graph, runtime="generic"), steps)
    answer = found.answer
    least, seconds = LISTED.get(graph.name, ("", None)) if listed else ("", None)
    reporting.progress(f"{graph.name}: {proof(answer)}, {found.seconds:.2f} s")
    kb = [found.cheap["file"], found.cheap["list"], found.cheap["beam"], answer.flow_bound, answer.lower_bound]
    return [
        graph.name,
        str(len(graph.ops)),
        *(f"{size / 1000:.0f}" for size in kb),
        f"**{answer.peak / 1000:.0f}**",
        proof(answer),
        f"{answer.states:,}",
        f"{found.seconds:.2f}",
        least,
        "" if seconds is None else f"{seconds:g}",
    ]


FAMILY_HEAD = (
    "network", "ops", "file order", "list", "beam 16", "flow bound", "proved", "peak", "certificate", "states",
    "s", "listed", "listed s",
)  # fmt: skip


def rows_of(makes: Sequence[Callable[[], Graph]], steps: int = BEST_STEPS, *, listed: bool = True) -> Iterator[str]:
    rows = (family_row(make, steps, listed=listed) for make in makes)
    yield from reporting.table(FAMILY_HEAD, rows, "<" * len(FAMILY_HEAD))


MODELS_LEGEND = (
    "Bytes, views shared, each format's usual runtime; open extents bound to batch 1, 128 tokens. Order helps"
    " where branches or cells give it a choice; a chain, DenseNet or U-Net has none, and its peak is the"
    " working set of one operator."
)

FAMILIES_LEGEND = (
    "KB = 1000 B of int8 activations, no in-place execution, no views. `file order` is what a converter emits,"
    " branch by branch; `listed` repeats the figures of the prototype that this scheduler follows, on its own"
    " instances of the same families: NASNet, DARTS and AmoebaNet follow the published genotypes in both and agree;"
    " the other rows are drawn anew here and alike in kind only. `s` is CPU time of one core."
)


def models_page(corpus: Path) -> Iterator[str]:
    """The models at hand, by where they come from."""
    groups = [
        ("ONNX light models", reporting.LIGHT, reporting.light_models()),
        ("The corpus", corpus / "tflite", sorted((corpus / "tflite").rglob("*.tflite"))),
        ("models/", reporting.ROOT / "models", reporting.own_models(".onnx", ".tflite")),
    ]
    yield MODELS_LEGEND
    for title, folder, paths in groups:
        yield from ("", f"## {title}", "")
        rows = (model_row(str(path.relative_to(folder)), path) for path in paths)
        yield from reporting.table(MODEL_HEAD, rows, "<" * len(MODEL_HEAD))


def families_page(steps: int) -> Iterator[str]:
    """The families, what stays hard, and a graph of ten thousand operators."""
    yield from (
        "",
        "## Generated families",
        "",
        FAMILIES_LEGEND,
        "",
        f"### Proved within {BEST_STEPS:,} steps (`--schedule best`)",
        "",
    )
    yield from rows_of(families.FAMILIES)
    yield from ("", "### More seeds of RandWire WS(32,4,0.75)", "")
    yield from rows_of([partial(families.randwire, 32, 4, 0.75, seed) for seed in range(3, 13)])
    yield from ("", f"### Unstructured wiring, {steps:,} steps", "")
    yield from rows_of(families.HARD, steps)
    yield from ("", "### Cells", "")
    yield from rows_of(families.CELLS, listed=False)
    yield from ("", families.NOT_REBUILT.strip(), "", f"### Ten thousand operators, {BEST_STEPS:,} steps", "")
    yield from rows_of(families.LARGE)
    yield ""
    yield f"Most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB."


PARSER = reporting.command_line(__file__, __doc__, "schedules.md")
PARSER.add_argument("--steps", type=int, default=1_500_000_000, help="for the unstructured wirings")


def main() -> None:
    arguments = reporting.parse(PARSER)
    lines = [*models_page(arguments.corpus), *families_page(arguments.steps)]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Orders of models and families", lines)


if __name__ == "__main__":
    main()
