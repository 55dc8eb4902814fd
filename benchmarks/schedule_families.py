"""The scheduler on generated network families, beside the figures of the prototype that it follows.

    python benchmarks/schedule_families.py [--steps N]

Peaks, bounds and states are the same on every machine; seconds are one core's of this one, CPU time.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import families
import reporting
from timed_orders import problem_of, proof, timed

from modelplan import Graph
from modelplan.planning.schedulers import BEST_STEPS

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


LEGEND = (
    "KB = 1000 B of int8 activations, no in-place execution, no views. `file order` is what a converter emits,"
    " branch by branch; `listed` repeats the figures of the prototype that this scheduler follows, on its own"
    " instances of the same families: NASNet, DARTS and AmoebaNet follow the published genotypes in both and agree;"
    " the other rows are drawn anew here and alike in kind only. `s` is CPU time of one core."
)


def page(steps: int) -> Iterator[str]:
    """The families, what stays hard, and a graph of ten thousand operators."""
    yield from (LEGEND, "", f"## Proved within {BEST_STEPS:,} steps (`--schedule best`)", "")
    yield from rows_of(families.FAMILIES)
    yield from ("", "## More seeds of RandWire WS(32,4,0.75)", "")
    yield from rows_of([partial(families.randwire, 32, 4, 0.75, seed) for seed in range(3, 13)])
    yield from ("", f"## Unstructured wiring, {steps:,} steps", "")
    yield from rows_of(families.HARD, steps)
    yield from ("", "## Cells", "")
    yield from rows_of(families.CELLS, listed=False)
    yield from ("", families.NOT_REBUILT.strip(), "", f"## Ten thousand operators, {BEST_STEPS:,} steps", "")
    yield from rows_of(families.LARGE)
    yield ""
    yield f"Most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB."


PARSER = reporting.command_line(__file__, __doc__, "schedule_families.md", corpus=False)
PARSER.add_argument("--steps", type=int, default=1_500_000_000, help="for the unstructured wirings")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Orders of generated network families", page(arguments.steps))


if __name__ == "__main__":
    main()
