"""What every row of the table of allocators has to show, on every problem of the corpus and on 500 random ones.

    python benchmarks/properties.py [--most BUFFERS]

Each answer passes the referee, with a height and a bound that no other row's answer contradicts; the same question
gets the same answer; and what a row claims holds: sizes and alignments times three give offsets times three
("scaling"), time turned round gives the same height ("reversal"). Searches get a budget of a few steps: this asks for
soundness, not for quality. Writes a page, after every problem; exits 1 when something did not hold.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import reporting

from modelplan import Problem, height
from modelplan.planning.allocators import ALLOCATORS

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "sweeps"))
from allocator_properties import CHECKS, FULL_BUDGET, SHORT, answer, random_problems


@dataclass
class Tally:
    """How often each row placed, refused, and was asked each check; what did not hold; the seconds it took."""

    placed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
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

    def row(self, name: str) -> list[object]:
        """The line of one allocator."""
        asked = [self.asked[name, check] or "" for check in CHECKS]
        return [name, self.placed[name], self.refused[name] or "", *asked, f"{self.seconds[name]:.1f}"]


def problems(corpus: Path, most: int) -> Iterator[tuple[str, Problem]]:
    """The random ones, then those of the corpus, the small ones first."""
    yield from ((f"random {i}", problem) for i, problem in enumerate(random_problems()))
    known = [(Path(name).name, found) for name, found in reporting.problems(corpus) if len(found) <= most]
    yield from sorted(known, key=lambda pair: (len(pair[1]), pair[0]))


def report(tally: Tally) -> Iterator[str]:
    yield (
        f"{tally.problems} problems of up to {tally.buffers:,} buffers, {len(random_problems())} of them random, the\n"
        f"others of the corpus. Every answer refereed; searches stopped after {SHORT.steps} steps, fewer for more"
        " than\n"
        f"{FULL_BUDGET} buffers. The columns count the problems on which a property was asked of the row; none is\n"
        "asked that the row does not claim."
    )
    yield ""
    yield f"Did not hold: {len(tally.faults)}."
    yield ""
    yield from (f"* {fault}" for fault in tally.faults)
    yield ""
    yield from reporting.table(("allocator", "placed", "refused", *CHECKS, "CPU s"), map(tally.row, ALLOCATORS))


PARSER = reporting.command_line(__file__, __doc__, "properties.md")
PARSER.add_argument("--most", type=int, default=10**9, metavar="BUFFERS", help="the most buffers of a problem")


def main() -> None:
    arguments = reporting.parse(PARSER)
    tally, first = Tally(), reporting.made_by(PARSER, arguments)
    for label, problem in problems(arguments.corpus, arguments.most):
        tally.add(label, problem)
        if not label.startswith("random"):
            reporting.progress(f"{label}: {len(tally.faults)} faults, {sum(tally.seconds.values()):.0f} s")
        reporting.save(arguments.output, first, "What every allocator has to show", report(tally))
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
