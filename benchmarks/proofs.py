"""Checks what our allocator claims against searches that share nothing with it.

    python benchmarks/proofs.py [--above 1000] [--exact 30] [--placed 2000]

* `--above` problems of at most ten buffers whose optimum is above the load: that nothing lower exists is shown by an
  exhaustive search, and the optimum is asked again with each inference rule off, all off, and some off at random.
* `--exact` such problems of 14 to 22 buffers: the optimum of OR-Tools' CP-SAT.
* `--placed` problems of at most seven buffers each, with alignments of 16 and 64 mixed, and with pins: the
  exhaustive search again.

The first wrong answer ends the command with exit code 1.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import reporting

from modelplan import Budget, Placement, Problem, check, height, load_bound, place
from modelplan.primitives import _core

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "sweeps"))
from problem_families import brimful

RULES = _core.SOLVER_RULES


class WrongError(Exception):
    """A claim that does not hold, with the problem that shows it."""


def claim(problem: Problem, without: tuple[str, ...] = ()) -> int | None:
    """The height that the solver calls optimal; None where it says that the pins exclude every placement."""
    p = problem
    offsets, bound, ended, _, _ = _core.solve(p.core, without=list(without))
    if ended == "infeasible" and (p.pin >= 0).any():
        return None
    placement = Placement(offsets, bound, ended)
    check(problem, placement)
    if ended != "optimal" or bound != height(problem, placement):
        raise WrongError(f"{ended} at {height(problem, placement)}, bound {bound}: {problem}")
    return int(bound)


class Exhaustive:
    """Whether some placement is lower than `limit`.

    Every placement can be pushed down until each buffer rests on others or on the ground. So buffers are put down by
    rising offset, each on what lies there; a branch ends when a buffer reaches the limit, or when what is still to
    come at some step no longer fits above what lies there.
    """

    def __init__(self, problem: Problem, limit: int) -> None:
        p = problem
        self.limit = limit
        self.lives = [range(int(a), int(b)) for a, b in zip(p.start, p.end, strict=True)]
        self.size, self.alignment, self.pin = p.size.tolist(), p.alignment.tolist(), p.pin.tolist()
        self.left = set(range(len(p)))
        self.top = [0] * int(p.end.max(initial=0))
        self.coming = [sum(z for z, life in zip(self.size, self.lives, strict=True) if s in life)
                       for s in range(len(self.top))]  # fmt: skip

    def succeeds(self, last: int = 0) -> bool:
        """Whether the buffers that are left fit at `last` or above."""
        if not self.left:
            return True
        if any(top + more >= self.limit for top, more in zip(self.top, self.coming, strict=True) if more):
            return False
        return any(self._try(i, last) for i in sorted(self.left))

    def _try(self, i: int, last: int) -> bool:
        life, size = self.lives[i], self.size[i]
        rest = -(-max(self.top[s] for s in life) // self.alignment[i]) * self.alignment[i]
        offset = rest if self.pin[i] < 0 else self.pin[i]
        if offset < max(rest, last) or offset + size >= self.limit:
            return False
        before = [self.top[s] for s in life]
        self._put(i, [offset + size] * len(life), -size)
        self.left.remove(i)
        if self.succeeds(offset):
            return True
        self.left.add(i)
        self._put(i, before, size)
        return False

    def _put(self, i: int, tops: list[int], more: int) -> None:
        for s, top in zip(self.lives[i], tops, strict=True):
            self.top[s] = top
            self.coming[s] += more


def above_the_load(n_least: int, n_most: int, count: int, seed: int) -> Iterator[tuple[Problem, int]]:
    """Problems that the solver says need more than their load, with the optimum that it claims."""
    draw, found = random.Random(seed), 0
    while found < count:
        problem = brimful(draw.randint(n_least, n_most), draw.getrandbits(48))
        best = claim(problem)
        if best is not None and best > load_bound(problem):
            found += 1
            yield problem, best


def exhaustive(count: int) -> str:
    draw, began, runs, sizes = random.Random(0), time.perf_counter(), 0, []
    for problem, best in above_the_load(9, 10, count, seed=1):
        if Exhaustive(problem, best).succeeds():
            raise WrongError(f"{best} is not the optimum of {problem}")
        some = tuple(rule for rule in RULES if draw.random() < 0.5)
        for without in (*((rule,) for rule in RULES), RULES, some):
            runs += 1
            if claim(problem, without) != best:
                raise WrongError(f"without {without} not {best}: {problem}")
        sizes.append(len(problem))
    return (
        f"* {count:,} problems of {min(sizes)} to {max(sizes)} buffers whose optimum is above the load: every optimum "
        f"confirmed by exhaustive search, and the same in {runs:,} runs with rules off "
        f"({time.perf_counter() - began:.0f} s)."
    )


def exact_model(count: int) -> str:
    began, sizes = time.perf_counter(), []
    for problem, best in above_the_load(14, 22, count, seed=2):
        answer = place(problem, "cp-sat", Budget(steps=60_000))
        if answer.ended != "optimal":
            raise WrongError(f"CP-SAT ended {answer.ended}, so nothing is confirmed: {problem}")
        if height(problem, answer) != best:
            raise WrongError(f"{best}, but CP-SAT proves {height(problem, answer)}: {problem}")
        sizes.append(len(problem))
    return (
        f"* {count} problems of {min(sizes)} to {max(sizes)} buffers whose optimum is above the load: CP-SAT proves "
        f"the same optimum on all ({time.perf_counter() - began:.0f} s)."
    )


def placed(count: int, what: str) -> str:
    """Small problems with alignments, or with pins; where pins clash, that nothing fits at all."""
    draw, began, above, none = np.random.default_rng(3), time.perf_counter(), 0, 0
    for _ in range(count):
        n, steps = int(draw.integers(2, 8)), int(draw.integers(2, 8))
        start = draw.integers(0, steps, n)
        problem = Problem(tuple(map(str, range(n))), draw.integers(1, int(draw.choice((12, 40, 150))), n), start,
                          draw.integers(start + 1, steps + 1))  # fmt: skip
        if what == "alignments of 1, 16 and 64":
            problem = replace(problem, alignment=draw.choice((1, 16, 64), n))
        else:
            problem = replace(problem, pin=np.where(draw.random(n) < 0.3, draw.integers(0, 60, n), -1))
        best = claim(problem)
        none += best is None
        above += best is not None and best > load_bound(problem)
        if Exhaustive(problem, 1 << 20 if best is None else best).succeeds():
            raise WrongError(f"{best} is not the optimum of {problem}")
    nowhere = f", {none} of them with clashing pins" if none else ""
    return (
        f"* {count:,} problems of at most seven buffers with {what}{nowhere}: every optimum confirmed by exhaustive "
        f"search, {above:,} of them above the load ({time.perf_counter() - began:.0f} s)."
    )


PARSER = reporting.command_line(__file__, __doc__, "proofs.md", corpus=False)
for option, count in (("--above", 1000), ("--exact", 30), ("--placed", 2000)):
    PARSER.add_argument(option, type=int, default=count, metavar="N")


def main() -> None:
    arguments = reporting.parse(PARSER)
    if min(arguments.above, arguments.exact, arguments.placed) < 1:
        PARSER.error("every count must be at least 1")
    parts: tuple[Callable[[], str], ...] = (
        lambda: placed(arguments.placed, "alignments of 1, 16 and 64"),
        lambda: placed(arguments.placed, "pins"),
        lambda: exact_model(arguments.exact),
        lambda: exhaustive(arguments.above),
    )
    lines = ["No wrong answer:", ""]
    for part in parts:
        lines.append(part())
        reporting.progress(lines[-1])
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Claims of optimality, checked", lines)


if __name__ == "__main__":
    main()
