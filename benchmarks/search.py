"""Processor time of `measure` on a thousand networks that a search draws, and on networks of 60 operators.

    python benchmarks/search.py [--trials 1000]

The code is that of docs/search.md. Each network is new: nothing of it was measured before.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import reporting

from modelplan import Footprint, Graph, measure, plan
from modelplan.model.bounds import height

OPERATORS = 60


def example() -> dict[str, Any]:
    """The names that the code of docs/search.md defines."""
    page = (reporting.ROOT / "docs" / "search.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    return names


def drawn(names: dict[str, Any], count: int, seed: int, operators: int | None = None) -> Iterator[Graph]:
    """Networks drawn like those of the page; with `operators` only those that have so many."""
    source = random.Random(seed)
    while count:
        stages = [
            (
                source.randrange(8 << i, (24 << i) + 1, 8),
                source.randint(1, 5),
                source.randint(2, 6),
                source.choice([3, 5, 7]),
            )
            for i in range(4)
        ]
        graph: Graph = names["network"](source.choice([64, 80, 96, 128]), stages)
        if operators is None or len(graph.ops) == operators:
            count -= 1
            yield graph


def timed(graphs: Iterator[Graph]) -> tuple[list[Graph], list[Footprint], list[float]]:
    networks, found, times = list(graphs), [], []
    for graph in networks:
        begin = time.process_time()
        found.append(measure(graph))
        times.append((time.process_time() - begin) * 1000)
    return networks, found, times


def row(name: str, networks: Sequence[Graph], found: Sequence[Footprint], times: Sequence[float]) -> Sequence[object]:
    operators = sorted(len(graph.ops) for graph in networks)
    proved = sum(one.height == one.bound for one in found)
    ninth = statistics.quantiles(times, n=10)[-1]
    return (
        name,
        len(networks),
        f"{operators[0]} to {operators[-1]}",
        f"{statistics.median(times):.1f}",
        f"{ninth:.1f}",
        proved,
    )


def report(names: dict[str, Any], trials: int) -> Iterator[str]:
    measure(next(drawn(names, 1, 99)))  # what is imported once belongs to no network
    some = timed(drawn(names, trials, 0))
    sixty = timed(drawn(names, 100, 1, OPERATORS))
    yield "Milliseconds of processor time of `measure`, one thread; the networks are made before, each is new. `at the"
    yield "bound`: no placement of these buffers is lower."
    yield ""
    rows = [row("drawn by the search", *some), row(f"of {OPERATORS} operators", *sixty)]
    yield from reporting.table(("networks", "count", "operators", "median", "9 of 10 below", "at the bound"), rows)
    yield ""
    sample = list(zip(sixty[0], sixty[1], strict=True))[:20]
    plans = [plan(graph) for graph, _ in sample]
    same = sum(
        height(one.problem, one.placement) == found.height for one, (_, found) in zip(plans, sample, strict=True)
    )
    yield f"Of {len(sample)} networks `plan` gives the same height for {same}."
    yield ""
    begin = time.process_time()
    study = names["search"](trials)
    seconds = time.process_time() - begin
    within = [trial for trial in study.trials if trial.value is not None]
    best = study.best_trial
    budget, least = f"{names['BUDGET']:,}", f"{best.user_attrs['height']:,}"
    yield f"The loop of docs/search.md with Optuna: {trials:,} trials, {len(within):,} within {budget} bytes,"
    yield f"in {seconds:.0f} s of processor time, Optuna's own included. The best has"
    yield f"{int(best.value or 0):,} multiply-accumulates in {least} bytes."


PARSER = reporting.command_line(__file__, __doc__, "search.md", corpus=False)
PARSER.add_argument("--trials", type=int, default=1000, metavar="N", help="networks to draw")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Architecture search", report(example(), arguments.trials))


if __name__ == "__main__":
    main()
