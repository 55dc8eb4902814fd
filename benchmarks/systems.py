"""MiniMalloc's decisions on its own set, and every fast planner on the large problem sets.

    python benchmarks/systems.py

Seconds are processor time of one thread, memory is the growth of the largest resident set; both depend on the machine,
nodes, heights and ratios do not.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import reporting

from modelplan import Budget, Problem, height, load_bound, place
from modelplan.planning.allocators.systems import minimalloc

CAPACITY = 1_048_576
LARGE = ("somas/resnet50", "somas/pangu_2.6B", "iopddl/S_1")
PLANNERS = (
    "xla-spatial",
    "xla-temporal",
    "xla-fast-merge",
    "xla-repack",
    "tvm-greedy-by-size",
    "tvm-token-reuse",
    "triton",
    "somas",
    "idealloc",
)


def own_set(corpus: Path) -> Iterator[Sequence[object]]:
    for name, problem in reporting.problems(corpus, f".{CAPACITY}"):
        begin = time.process_time()
        answer = minimalloc.decide(problem, CAPACITY)
        seconds = time.process_time() - begin
        below = minimalloc.decide(problem, load_bound(problem) - 1)
        rate = answer.steps / max(seconds, 1e-9)
        yield (Path(name).name[0], len(problem), answer.ended, f"{answer.steps:,}", f"{seconds:.3f}", f"{rate:,.0f}",
               f"{below.ended} after {below.steps:,} nodes")  # fmt: skip


def placed(problem: Problem, bound: int, planner: str) -> Sequence[object]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    ratio = height(problem, place(problem, planner, Budget())) / bound
    seconds = time.process_time() - begin
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return planner, f"{ratio:.4f}", f"{seconds:.2f}", f"{grown:.1f}"


def large_set(name: str, given: Problem) -> Iterator[str]:
    problem = replace(given, capacity=None)
    bound = load_bound(problem)
    yield f"## {name}: {len(problem):,} buffers, load bound {bound:,}"
    yield ""
    rows = (placed(problem, bound, planner) for planner in PLANNERS)
    for line in reporting.table(("planner", "height / bound", "CPU s", "MiB"), rows):
        reporting.progress(line)
        yield line


def page(corpus: Path) -> Iterator[str]:
    yield f"MiniMalloc's search: does its own set fit in {CAPACITY:,} bytes, and in one byte less than the load bound?"
    yield ""
    headings = ("set", "buffers", "answer", "nodes", "CPU s", "nodes/s", "below the bound")
    yield from reporting.table(headings, own_set(corpus), "<><>>><")
    for part in LARGE:
        for name, problem in reporting.problems(corpus, part):
            yield ""
            yield from large_set(name, problem)


PARSER = reporting.command_line(__file__, __doc__, "systems.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "The systems' planners on large sets", page(arguments.corpus))


if __name__ == "__main__":
    main()
