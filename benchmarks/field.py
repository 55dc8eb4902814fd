"""Every allocator on every problem of the corpus: height over the load bound, and CPU seconds.

    python benchmarks/field.py [--only PART] [--most BUFFERS] [--greedy]

Every placement passes the referee. `--only` takes a part of the path of the problems to run, `--most` the most
buffers, `--greedy` leaves the searches out. Writes the page and, beside it, all cells as .csv.
"""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import reporting

from modelplan import Problem, RequestError, height, load_bound, place
from modelplan.model import Budget
from modelplan.planning.allocators import ALLOCATORS

#: Seconds that a search may take for one problem: where it has no end of its own this keeps the run short.
SECONDS = 2.0
SEARCHES = {"search", "exact", "portfolio"}


@dataclass(frozen=True)
class Cell:
    """One allocator's answer to one problem; a refusal has no height and says why.

    `found_by` names another allocator whose height it is; `own_height` is then the search's own best, if it had one.
    """

    problem: str
    buffers: int
    bound: int
    allocator: str
    height: int | None
    cpu_seconds: float
    refusal: str = ""
    found_by: str = ""
    own_height: int | None = None

    @property
    def ratio(self) -> float:
        return self.height / self.bound if self.height is not None and self.bound else 1.0


def run(name: str, problem: Problem, allocator: str) -> Cell:
    budget = Budget(seconds=SECONDS) if ALLOCATORS[allocator].kind in SEARCHES else Budget()
    bound, begin = load_bound(problem), time.process_time()
    try:
        found = place(problem, allocator, budget)
    except RequestError as why:
        return Cell(name, len(problem), bound, allocator, None, _since(begin), str(why))
    top, taken = height(problem, found), _since(begin)
    return Cell(name, len(problem), bound, allocator, top, taken, "", found.found_by, found.own_height)


def _since(begin: float) -> float:
    return round(time.process_time() - begin, 4)


def summary(allocator: str, cells: Sequence[Cell]) -> Sequence[object]:
    placed = [c for c in cells if c.allocator == allocator and c.height is not None]
    if not placed:
        return allocator, 0, "", "", "", "", "", ""
    worst = max(placed, key=lambda c: c.ratio)
    at_load = sum(c.height == c.bound for c in placed)
    mean = sum(c.ratio for c in placed) / len(placed)
    seconds = max(c.cpu_seconds for c in placed)
    lent = sum(bool(c.found_by) for c in placed) or ""
    ratios = f"{mean:.4f}", f"{worst.ratio:.3f}"
    return allocator, len(placed), lent, at_load, *ratios, worst.problem, f"{seconds:.2f}"


def report(cells: Sequence[Cell]) -> Iterator[str]:
    names = list(dict.fromkeys(c.problem for c in cells))
    rows = list(dict.fromkeys(c.allocator for c in cells))
    most = max((c.buffers for c in cells), default=0)
    refused = Counter((c.allocator, c.refusal) for c in cells if c.refusal)
    yield f"{len(rows)} allocators on {len(names)} problems of up to {most:,} buffers, every placement refereed, one"
    yield "thread. The load is a lower bound that not every problem allows. Searches stop after"
    yield f"{SECONDS:g} seconds. The last column is the most CPU seconds for one problem, referee included."
    yield ""
    yield "Where a search had no solution below the one of `first-fit-size`, that one's height is shown; the column"
    yield "`not its own` counts these problems, the table of cells names them and the search's own best, if any."
    yield ""
    headings = ("allocator", "placed", "not its own", "at the load", "mean height/load", "worst", "on", "CPU s")
    yield from reporting.table(headings, (summary(allocator, cells) for allocator in rows), "<>>>>><>")
    yield ""
    yield "## Refused"
    yield ""
    yield from (f"* {allocator}, {count} times: {why}" for (allocator, why), count in refused.items())


PARSER = reporting.command_line(__file__, __doc__, "field.md")
PARSER.add_argument("--only", default="", metavar="PART", help="a part of the path of the problems to run")
PARSER.add_argument("--most", type=int, default=10**9, metavar="BUFFERS", help="the most buffers of a problem")
PARSER.add_argument("--greedy", action="store_true", help="leave the searches out")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    allocators = [name for name, row in ALLOCATORS.items() if not arguments.greedy or row.kind not in SEARCHES]
    small_first = sorted(reporting.problems(arguments.corpus, arguments.only), key=lambda pair: len(pair[1]))
    cells: list[Cell] = []
    for name, problem in small_first:
        if len(problem) <= arguments.most:
            cells += [run(name, problem, allocator) for allocator in allocators]
            reporting.progress(f"{name}: {sum(c.cpu_seconds for c in cells if c.problem == name):.1f} s")
            write(arguments.output, cells, first)


def write(output: Path, cells: Sequence[Cell], first: str) -> None:
    """Both files, after every problem: a run that is broken off leaves a report of what it did."""
    with output.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(f.name for f in fields(Cell))
        writer.writerows(astuple(cell) for cell in cells)
    reporting.save(output, first, "The field", report(cells))


if __name__ == "__main__":
    main()
