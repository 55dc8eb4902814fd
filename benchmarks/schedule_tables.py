"""Writes the scheduler's tables into reports/: network families against the reference, and every model at hand.

    python benchmarks/schedule_tables.py families [--steps N]    reports/schedule_families.md
    python benchmarks/schedule_tables.py models                  reports/schedule_models.md

Peaks, bounds and states are the same on every machine; seconds are one core's of this one, CPU time.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import families
import onnx

from modelplan import Graph, aliasing, load, runtimes
from modelplan.errors import ModelPlanError
from modelplan.referee import check_flow
from modelplan.schedulers import BEST_STEPS
from modelplan.schedulers.order_core import Answer, Effort, solve
from modelplan.schedulers.problem import order_problem
from modelplan.types import OrderProblem

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus"))
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


#: What models/ leaves open.
DIMS = {
    "bert_like.onnx": ("batch=1", "sequence=128"),
    "bert_like_dynamo.onnx": ("batch=1", "sequence=128"),
    "decoder_kv.onnx": ("batch=1", "sequence=1", "past_sequence=127"),
    "decoder_kv_dynamo.onnx": ("batch=1", "sequence=1", "past_sequence=127"),
}


@dataclass(frozen=True)
class Timed:
    """An answer, its CPU seconds, and the peaks of the cheap orders."""

    answer: Answer
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


def proof(answer: Answer) -> str:
    """How good the peak is, in the words of `analyze`."""
    if answer.peak == answer.lower_bound:
        return "optimal (flow certificate)" if answer.flow_bound == answer.peak else "optimal (search)"
    return f"within {answer.peak / answer.lower_bound - 1:.1%}"


def posed(graph: Graph, *, alias: str = "none", runtime: str | None = None) -> OrderProblem:
    return order_problem(graph, aliasing.storages(graph, alias), runtimes.runtime(runtime, graph.format))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in lines)


def family_row(make: Callable[[], Graph], steps: int, *, listed: bool = True) -> list[str]:
    graph = make()
    found = timed(posed(graph, runtime="generic"), steps)
    answer = found.answer
    least, seconds = LISTED.get(graph.name, ("", None)) if listed else ("", None)
    print(f"{graph.name}: {proof(answer)}, {found.seconds:.2f} s", file=sys.stderr, flush=True)
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


def write_families(steps: int) -> None:
    """The families, what stays hard, and a graph of ten thousand operators."""
    head = (
        "# Orders of generated network families\n\nMade by `python benchmarks/schedule_tables.py families`.\n\n"
        "KB = 1000 B of int8 activations, no in-place execution, no views. `file order` is what a converter emits,"
        " branch by branch; `listed` repeats the figures of the prototype that this scheduler follows, on its own"
        " instances of the same families: NASNet, DARTS and AmoebaNet follow the published genotypes in both and agree;"
        " the other rows are drawn anew here and alike in kind only. `s` is CPU time of one core.\n\n"
        f"## Proved within {BEST_STEPS:,} steps (`--schedule best`)\n\n"
    )
    parts = [
        head,
        table(FAMILY_HEAD, [family_row(make, BEST_STEPS) for make in families.FAMILIES]),
        "\n## More seeds of RandWire WS(32,4,0.75)\n\n",
        table(
            FAMILY_HEAD, [family_row(lambda s=s: families.randwire(32, 4, 0.75, s), BEST_STEPS) for s in range(3, 13)]
        ),
        f"\n## Unstructured wiring, {steps:,} steps\n\n",
        table(FAMILY_HEAD, [family_row(make, steps) for make in families.HARD]),
        "\n## Cells\n\n",
        table(FAMILY_HEAD, [family_row(make, BEST_STEPS, listed=False) for make in families.CELLS]),
        "\n" + (families.NOT_REBUILT.strip() + "\n"),
        f"\n## Ten thousand operators, {BEST_STEPS:,} steps\n\n",
        table(FAMILY_HEAD, [family_row(make, BEST_STEPS) for make in families.LARGE]),
        f"\nMost memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB.\n",
    ]
    write("schedule_families.md", "".join(parts))


MODEL_HEAD = (
    "model", "ops", "file order", "peak", "saved", "flow bound", "proved", "certificate", "found by", "states", "s",
)  # fmt: skip


def model_row(name: str, path: Path) -> list[str]:
    try:
        graph = load(path, DIMS.get(path.name, ()))
    except ModelPlanError as problem:
        words = str(problem).replace(str(path), name).replace("|", "/").replace("\n", " ")
        return [name, "", "", "", "", "", "", f"refused: {words[:90]}", "", "", ""]
    assert isinstance(graph, Graph)
    found = timed(posed(graph, alias="views"), BEST_STEPS)
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


def write_models() -> None:
    """Every model of the ONNX package, the corpus and the project."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    groups = [
        ("ONNX light models", light, sorted(light.glob("*.onnx"))),
        ("The corpus", CORPUS / "tflite", sorted((CORPUS / "tflite").rglob("*.tflite"))),
        (
            "models/",
            ROOT / "models",
            sorted(p for p in (ROOT / "models").iterdir() if p.suffix in (".onnx", ".tflite")),
        ),
    ]
    parts = [
        "# Orders of real models\n\nMade by `python benchmarks/schedule_tables.py models`.\n\n",
        "Bytes, views shared, each format's usual runtime; open extents bound to batch 1, 128 tokens. Order helps",
        " where branches or cells give it a choice; a chain, DenseNet or U-Net has none, and its peak is the",
        " working set of one operator.\n",
    ]
    for title, folder, paths in groups:
        rows = [model_row(str(p.relative_to(folder)), p) for p in paths]
        parts.append(f"\n## {title}\n\n" + table(MODEL_HEAD, rows))
    write("schedule_models.md", "".join(parts))


def write(name: str, text: str) -> None:
    (ROOT / "reports" / name).write_text(text)
    print(f"reports/{name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("families", "models"))
    parser.add_argument("--steps", type=int, default=1_500_000_000, help="for the unstructured wirings")
    arguments = parser.parse_args()
    if arguments.what == "families":
        write_families(arguments.steps)
    else:
        write_models()


if __name__ == "__main__":
    main()
