"""Measures the systems' planners: MiniMalloc on its own set, and every fast planner on the large problem sets.

python benchmarks/systems.py CORPUS [--large]

Seconds are processor time of one thread, memory is the growth of the largest resident set; both depend on the machine,
nodes, heights and ratios do not.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from pathlib import Path

from modelplan import Budget, Problem, height, load, load_bound, place
from modelplan.allocators import minimalloc

LARGE = ("somas/resnet50.csv", "somas/pangu_2.6B.csv", "iopddl/S_1.csv")
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


def problem_in(path: Path) -> Problem:
    problem = load(path)
    assert isinstance(problem, Problem)
    return problem


def timed_decision(problem: Problem, capacity: int) -> tuple[minimalloc.Decision, float]:
    begin = time.process_time()
    return minimalloc.decide(problem, capacity), time.process_time() - begin


def own_set(corpus: Path) -> None:
    print("MiniMalloc, decision at 1,048,576 and one below the load bound\n")
    print(f"{'set':4}{'buffers':>8}  {'answer':10}{'nodes':>9}{'s':>8}{'nodes/s':>10}  below the bound")
    for path in sorted((corpus / "problems" / "minimalloc").glob("?.1048576.csv")):
        problem = problem_in(path)
        answer, seconds = timed_decision(problem, 1048576)
        below, _ = timed_decision(problem, load_bound(problem) - 1)
        rate = answer.steps / max(seconds, 1e-9)
        print(
            f"{path.name[0]:4}{len(problem):8}  {answer.ended:10}{answer.steps:9}{seconds:8.3f}{rate:10,.0f}"
            f"  {below.ended} after {below.steps} nodes"
        )


def large_sets(corpus: Path) -> None:
    for name in LARGE:
        problem = replace(problem_in(corpus / "problems" / name), capacity=None)
        bound = load_bound(problem)
        print(f"\n{name}: {len(problem):,} buffers, load bound {bound:,}")
        print(f"{'planner':22}{'height/bound':>13}{'s':>8}{'MiB':>8}")
        for planner in PLANNERS:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            begin = time.process_time()
            ratio = height(problem, place(problem, planner, Budget())) / bound
            seconds = time.process_time() - begin
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            print(f"{planner:22}{ratio:13.4f}{seconds:8.2f}{grown:8.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--large", action="store_true", help="the sets of 1,042, 18,692 and 28,526 buffers too")
    arguments = parser.parse_args()
    own_set(arguments.corpus)
    if arguments.large:
        large_sets(arguments.corpus)


if __name__ == "__main__":
    main()
