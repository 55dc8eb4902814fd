"""What every row of the table of allocators has to show, on every problem of the corpus and on 500 random ones.

    python benchmarks/properties.py --corpus ../shared/corpus --output reports/properties.md [--most BUFFERS]

Each answer passes the referee, with a height and a bound that no other row's answer contradicts; the same question
gets the same answer; and what a row claims holds: sizes and alignments times three give offsets times three
("scaling"), time turned round gives the same height ("reversal"). Searches get a budget of a few steps: this asks for
soundness, not for quality. Writes a page, after every problem; exits 1 when something did not hold.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from modelplan import Budget, Buffer, Placement, Problem, RequestError, height, load, load_bound, place
from modelplan.allocators import ALLOCATORS

SHORT = Budget(steps=300)

#: Buffers up to which a search gets all these steps; beyond, they shrink with the square.
FULL_BUDGET = 300


@functools.cache
def random_problems() -> tuple[Problem, ...]:
    """500 problems of up to 24 buffers: few steps or many, equal sizes or not, aligned or not."""
    draw = random.Random(4)
    return tuple(_random_problem(draw, i) for i in range(500))


def _random_problem(draw: random.Random, i: int) -> Problem:
    n, horizon = draw.randint(1, 24), draw.choice([3, 8, 30, 1000])
    largest, step = draw.choice([(1, 1), (9, 1), (64, 8), (5000, 64), (10**9, 1)]), draw.choice([1, 1, 4, 16])
    buffers = []
    for b in range(n):
        start = draw.randrange(horizon)
        size = 7 if i % 10 == 0 else draw.randint(0, largest[0] // largest[1]) * largest[1]
        end = start + draw.randint(1, max(1, horizon // draw.choice([1, 3, 10])))
        buffers.append(Buffer(f"b{b}", size, start, end, step))
    return Problem.of(buffers)


def short(problem: Problem) -> Budget:
    """Steps that are few in time, too."""
    assert SHORT.steps is not None
    return Budget(steps=max(1, SHORT.steps * FULL_BUDGET**2 // max(len(problem), FULL_BUDGET) ** 2))


def answer(problem: Problem, name: str, budget: Budget | None = None) -> Placement | None:
    """The refereed placement within the budget, or a short one; None where the allocator refuses.

    Raises:
        AssertionError: its bound is above its height, or below the load.
    """
    try:
        found = place(problem, name, budget or short(problem))
    except RequestError:
        return None
    assert load_bound(problem) <= found.lower_bound <= height(problem, found), name
    return found


def repeats(problem: Problem, name: str, found: Placement) -> bool:
    """The same question gets the same answer."""
    return answer(problem, name) == found


def scales(problem: Problem, name: str, found: Placement) -> bool:
    """Sizes and alignments times three give offsets times three, unless the larger numbers are refused."""
    scaled = replace(problem, size=problem.size * 3, alignment=problem.alignment * 3, capacity=None)
    other = answer(scaled, name)
    return other is None or (found.offsets * 3).tolist() == other.offsets.tolist()


def turns(problem: Problem, name: str, found: Placement) -> bool:
    """Time turned round gives the same height."""
    last = int(problem.end.max(initial=0))
    turned = replace(problem, start=last - problem.end, end=last - problem.start)
    other = answer(turned, name)
    return other is None or height(problem, found) == height(turned, other)


CHECKS: dict[str, Callable[[Problem, str, Placement], bool]] = {
    "the same again": repeats,
    "scaling": scales,
    "reversal": turns,
}


@dataclass
class Tally:
    """How often each row placed, refused, and was asked each check; what did not hold; the seconds it took."""

    placed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    problems: int = 0
    buffers: int = 0

    def add(self, label: str, problem: Problem) -> None:
        """Asks every row of one problem."""
        lowest, highest = (sys.maxsize, ""), (0, "")
        self.problems += 1
        self.buffers = max(self.buffers, len(problem))
        for name, row in ALLOCATORS.items():
            began = time.process_time()
            found = answer(problem, name)
            if found is None:
                self.refused[name] += 1
                continue
            self.placed[name] += 1
            lowest = min(lowest, (height(problem, found), name))
            highest = max(highest, (found.lower_bound, name))
            for check, holds in CHECKS.items():
                if check != "the same again" and check not in row.invariants:
                    continue
                self.asked[name, check] += 1
                if not holds(problem, name, found):
                    self.faults.append(f"{label}: {name}: {check} does not hold")
            self.seconds[name] += time.process_time() - began
        if highest[0] > lowest[0]:
            self.faults.append(f"{label}: {highest[1]} proves {highest[0]}, {lowest[1]} places in {lowest[0]}")


def problems(corpus: Path, most: int) -> Iterator[tuple[str, Problem]]:
    """The random ones, then those of the corpus, the small ones first."""
    yield from ((f"random {i}", problem) for i, problem in enumerate(random_problems()))
    loaded = [(path.stem, load(str(path))) for path in (corpus / "problems").rglob("*.csv")]
    known = [(name, found) for name, found in loaded if isinstance(found, Problem) and len(found) <= most]
    yield from sorted(known, key=lambda pair: (len(pair[1]), pair[0]))


def report(tally: Tally, command: str) -> str:
    rows = []
    for name in ALLOCATORS:
        checks = (str(tally.asked[name, check] or "") for check in CHECKS)
        cells = (name, str(tally.placed[name]), str(tally.refused[name] or ""), *checks, f"{tally.seconds[name]:.1f}")
        rows.append("| " + " | ".join(cells) + " |")
    lines = [
        f"Made by `python benchmarks/properties.py {command}`.",
        "",
        "# What every allocator has to show",
        "",
        f"{tally.problems} problems of up to {tally.buffers:,} buffers, {len(random_problems())} of them random, the",
        f"others of the corpus. Every answer refereed; searches stopped after {SHORT.steps} steps, fewer for more than",
        f"{FULL_BUDGET} buffers. The columns count the problems on which a property was asked of the row; none is",
        "asked that the row does not claim.",
        "",
        f"Did not hold: {len(tally.faults)}.",
        "",
        *(f"* {fault}" for fault in tally.faults),
        "",
        f"| allocator | placed | refused | {' | '.join(CHECKS)} | CPU s |",
        "|---|---:|---:|" + "---:|" * (len(CHECKS) + 1),
        *rows,
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--most", type=int, default=10**9, help="the most buffers of a problem")
    arguments = parser.parse_args()
    if not (arguments.corpus / "problems").is_dir():
        parser.error(f"no problems in {arguments.corpus}")
    tally, command = Tally(), " ".join(sys.argv[1:])
    for label, problem in problems(arguments.corpus, arguments.most):
        tally.add(label, problem)
        if not label.startswith("random"):
            print(f"{label}: {len(tally.faults)} faults, {sum(tally.seconds.values()):.0f} s", flush=True)
        arguments.output.write_text(report(tally, command))
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
