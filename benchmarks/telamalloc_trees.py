"""Trains the trees of `telamalloc-learned`: which decision should a major backtrack take back?

    python benchmarks/telamalloc_trees.py [--seeds 25]

Needs lightgbm (extra `train`), which nothing else does. Writes
modelplan/planning/allocators/systems/telamalloc_trees.csv, a row for
each node. The same seeds give the same file.

The teacher is modelplan's own solver: the decisions of a recorded search are pinned from the first on, as many as a
placement within the capacity still allows. The next one is the mistake. Records where the solver is not sure are left
out. The trees learn to rank the mistake above all other decisions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import reporting
from recorded_backtracks import backtracks

from modelplan import Budget, Problem, height, place
from modelplan.model import IntArray
from modelplan.planning.allocators.systems import telamalloc

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "sweeps"))
from problem_families import FAMILIES

#: The families that the trees are trained on. What the report measures is none of these.
TRAINED = ("tiling", "mix", "rand_sparse", "rand_unif", "rand_short", "skew_zipf", "brimful")
SIZES = (25, 40, 60, 90)
#: Capacities in percent of the best height known.
PERCENT = (100, 101, 103)
STEPS = 1500  # of a recorded search, in placements
MOST = 6  # major backtracks recorded of a search, evenly spread
PROOF = 400  # steps of the solver for one question
ROUNDS = 30  # twice as many, and trees of 15 leaves, choose no better on other families
SETTINGS = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 10,
    "num_leaves": 4,
    "learning_rate": 0.2,
    "min_data_in_leaf": 40,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 1,
    "verbose": -1,
}
SCORE = 10_000  # a leaf's value times this, rounded


@dataclass(frozen=True)
class Example:
    """The features of each decision of a failed search, and which of them was the mistake."""

    features: IntArray
    mistake: int


def problems(seeds: int) -> Iterator[Problem]:
    for family in TRAINED:
        for n in SIZES:
            yield from (FAMILIES[family](n, seed) for seed in range(seeds))


def allowed(problem: Problem, capacity: int, buffers: IntArray, offsets: IntArray) -> bool | None:
    """Whether a placement within the capacity has these buffers there; None when the solver does not know."""
    pin = problem.pin.copy()
    pin[buffers] = offsets
    answer = place(replace(problem, pin=pin), "modelplan", Budget(enough=capacity, steps=PROOF))
    if height(problem, answer) <= capacity:
        return True
    return False if answer.lower_bound > capacity else None


def mistake(problem: Problem, capacity: int, buffers: IntArray, offsets: IntArray) -> int | None:
    """How many decisions a placement still allows: the number of the first that it does not."""
    low, high = 0, len(buffers) - 1
    while low < high:
        middle = (low + high + 1) // 2
        answer = allowed(problem, capacity, buffers[:middle], offsets[:middle])
        if answer is None:
            return None
        low, high = (middle, high) if answer else (low, middle - 1)
    return low


def examples(problem: Problem) -> Iterator[Example]:
    best = height(problem, place(problem, "modelplan", Budget(steps=20_000)))
    for percent in PERCENT:
        capacity = best * percent // 100
        major = backtracks(problem, capacity, STEPS).major
        if not major:
            continue
        found = backtracks(problem, capacity, STEPS, most=MOST, every=max(1, major // MOST))
        for record in found.records:
            at = mistake(problem, capacity, record.buffers, record.offsets)
            if at is not None:
                yield Example(record.features, at)


def rows(model: dict[str, Any]) -> Iterator[list[int]]:
    """The trees in preorder: tree, feature, threshold, row where values above it go on; a leaf has feature -1."""
    table: list[list[int]] = []

    def walk(tree: int, node: dict[str, Any]) -> None:
        row = [tree, -1, round(SCORE * node.get("leaf_value", 0)), 0]
        table.append(row)
        if "split_feature" not in node:
            return
        row[1:3] = node["split_feature"], int(np.floor(node["threshold"]))
        walk(tree, node["left_child"])
        row[3] = len(table)
        walk(tree, node["right_child"])

    for number, tree in enumerate(model["tree_info"]):
        walk(number, tree["tree_structure"])
    yield from table


def main() -> None:
    import lightgbm

    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="telamalloc_trees.py", description=__doc__, formatter_class=style)
    parser.add_argument("--seeds", type=int, default=25, metavar="N", help="problems of each family and size")
    parser.add_argument("--output", type=Path, metavar="FILE", default=telamalloc.TREES, help="the table")
    arguments = parser.parse_args()
    learned = [example for problem in problems(arguments.seeds) for example in examples(problem)]
    reporting.progress(f"{len(learned)} major backtracks")
    features = np.concatenate([example.features for example in learned])
    right = np.zeros(len(features), dtype=np.int64)
    groups = [len(example.features) for example in learned]
    right[np.cumsum([0, *groups[:-1]]) + [example.mistake for example in learned]] = 1
    booster = lightgbm.train(SETTINGS, lightgbm.Dataset(features, right, group=groups), ROUNDS)
    lines = ["tree,feature,threshold,above", *(",".join(map(str, row)) for row in rows(booster.dump_model()))]
    arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
