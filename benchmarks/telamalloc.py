"""Does the learned choice of the point to return to help the search in the style of TelaMalloc?

    python benchmarks/telamalloc.py

The same problems by three rules with the same budget of placements: the second-latest culprit, the trees, and for
comparison a plain search that starts anew, with shorter patience, where it gave up or half of the budget is spent. No
problem is of a family that the trees were trained on. The limits are in percent of the lowest height known.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting
from recorded_backtracks import backtracks
from telamalloc_trees import TRAINED

from modelplan import Budget, Problem, height, place
from modelplan.planning.allocators.systems import telamalloc

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "sweeps"))
from problem_families import FAMILIES

FRESH = ("pinwheel", "skew_log_uniform", "skew_bimodal", "nn_dense", "nn_train", "nn_unet", "nn_multi")
SIZES = (30, 50, 80)
SEEDS = range(100, 110)
PERCENT = (90, 95, 100, 101, 102, 105, 110)
STEPS = 2000


@dataclass(frozen=True)
class Search:
    """How one search went: placements tried and backtracks of both kinds."""

    solved: bool
    steps: int
    backtracks: int


def ran(problem: Problem, capacity: int, steps: int, options: telamalloc.TelamallocOptions) -> Search:
    answer = backtracks(problem, capacity, steps, options)
    return Search(answer.ended == "complete", answer.steps, answer.minor + answer.major)


def plain(problem: Problem, capacity: int, steps: int) -> Search:
    return ran(problem, capacity, steps, telamalloc.DEFAULTS)


def learned(problem: Problem, capacity: int, steps: int) -> Search:
    return ran(problem, capacity, steps, telamalloc.LEARNED)


def twice(problem: Problem, capacity: int, steps: int) -> Search:
    """The plain rule with half of the budget, then with patience for one return."""
    first = plain(problem, capacity, steps // 2)
    if first.solved:
        return first
    second = ran(problem, capacity, steps - first.steps, telamalloc.TelamallocOptions(stuck_after=1))
    return Search(second.solved, first.steps + second.steps, first.backtracks + second.backtracks)


RULES = (plain, learned, twice)


def mean_ratio(pairs: Iterable[tuple[int, int]]) -> str:
    """The geometric mean of new to old, one added to both."""
    logs = [math.log((new + 1) / (old + 1)) for old, new in pairs]
    return f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else ""


def compared(name: str, questions: Sequence[tuple[Search, ...]]) -> Sequence[object]:
    """The row of one group of questions that the plain rule does not answer without a backtrack."""
    hard = [searches for searches in questions if searches[0].backtracks]
    both = [searches for searches in hard if searches[0].solved and searches[1].solved]
    return (
        name,
        len(questions),
        len(hard),
        *(sum(searches[k].solved for searches in hard) for k in range(len(RULES))),
        mean_ratio((s[0].backtracks, s[1].backtracks) for s in both),
        mean_ratio((s[0].steps, s[1].steps) for s in both),
    )


HEADINGS = ("", "questions", "with backtracks", "plain", "learned", "twice", "backtracks", "placements")


def generated() -> Iterator[str]:
    asked = {}
    for family in FRESH:
        for n in SIZES:
            for seed in SEEDS:
                problem = FAMILIES[family](n, seed)
                best = height(problem, place(problem, "modelplan", Budget(steps=20_000)))
                for percent in PERCENT:
                    searches = tuple(rule(problem, best * percent // 100, STEPS) for rule in RULES)
                    asked[family, percent, n, seed] = searches
        reporting.progress(family)
    yield f"{told(list(asked.values()))}"
    yield ""
    rows = [compared(f, [s for key, s in asked.items() if key[0] == f]) for f in FRESH]
    yield from reporting.table(HEADINGS, [*rows, compared("all", list(asked.values()))])
    yield ""
    limits = [compared(f"{limit} %", [s for key, s in asked.items() if key[1] == limit]) for limit in PERCENT]
    yield from reporting.table(HEADINGS, limits)


def told(questions: Sequence[tuple[Search, ...]]) -> str:
    """What the trees gain and lose, question by question."""
    gained = sum(learned.solved and not plain.solved for plain, learned, _ in questions)
    lost = sum(plain.solved and not learned.solved for plain, learned, _ in questions)
    again = sum(twice.solved and not plain.solved for plain, _, twice in questions)
    first = f"{gained} questions answered that the plain rule leaves open, {lost} left open that it answers;"
    return f"{first} `twice` {again}."


def corpus_rows(corpus: Path) -> Iterator[Sequence[object]]:
    """The published sets of MiniMalloc, each with all limits."""
    for name, problem in reporting.problems(corpus, "minimalloc/"):
        best = height(problem, place(problem, "modelplan", Budget(steps=300_000)))
        reporting.progress(name)
        yield compared(
            name, [tuple(rule(problem, best * percent // 100, STEPS) for rule in RULES) for percent in PERCENT]
        )


def page(corpus: Path) -> Iterator[str]:
    yield from (
        "A question is whether a problem fits in 90 to 110 % of its lowest height known; below 100 % of an optimum it",
        "does not. Under each rule stand the questions answered with a placement, of those where the plain rule",
        "backtracks. Ratios of backtracks and placements tried are learned to plain: the geometric mean where both",
        "find a placement.",
        "",
        f"The trees are trained on {', '.join(TRAINED)}.",
        "No problem here is of these families. `twice` is no part of the project: it shows what a second search gains",
        "without any trees.",
        "",
        f"## Generated problems of {', '.join(map(str, SIZES))} buffers, {STEPS:,} placements",
        "",
    )
    yield from generated()
    yield from ("", f"## MiniMalloc's sets, {STEPS:,} placements", "")
    yield from reporting.table(HEADINGS, corpus_rows(corpus))


def main() -> None:
    arguments = reporting.parse(PARSER)
    title = "The learned choice of the point to return to"
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), title, page(arguments.corpus))


PARSER = reporting.command_line(__file__, __doc__, "telamalloc.md")

if __name__ == "__main__":
    main()
