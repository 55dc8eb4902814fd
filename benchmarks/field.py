"""Every allocator on every problem of the corpus: height over the load bound, and CPU seconds.

    python benchmarks/field.py --corpus ../shared/corpus --output reports/field

Every placement passes the referee. `--only` takes a part of the path of the problems to run, `--most` the most
buffers, `--greedy` leaves the searches out. Writes a page .md and all cells as .csv.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from modelplan import Problem, RequestError, height, load, load_bound, place
from modelplan.allocators import ALLOCATORS
from modelplan.types import Budget

#: Seconds that a search may take for one problem: where it has no end of its own this keeps the run short.
SECONDS = 2.0
SEARCHES = {"search", "exact", "portfolio"}


@dataclass(frozen=True)
class Cell:
    """One allocator's answer to one problem; a refusal has no height and says why."""

    problem: str
    buffers: int
    bound: int
    allocator: str
    height: int | None
    cpu_seconds: float
    refusal: str = ""

    @property
    def ratio(self) -> float:
        return self.height / self.bound if self.height is not None and self.bound else 1.0


def problems(corpus: Path, only: str) -> Iterator[tuple[str, Problem]]:
    """Name and problem, the small ones first."""
    loaded = []
    for path in sorted((corpus / "problems").rglob("*.csv")):
        name = str(path.relative_to(corpus / "problems").with_suffix(""))
        found = load(str(path)) if only in name else None
        if isinstance(found, Problem):
            loaded.append((name, found))
    yield from sorted(loaded, key=lambda pair: len(pair[1]))


def run(name: str, problem: Problem, allocator: str) -> Cell:
    budget = Budget(seconds=SECONDS) if ALLOCATORS[allocator].kind in SEARCHES else Budget()
    begin, top, refusal = time.process_time(), None, ""
    try:
        top = height(problem, place(problem, allocator, budget))
    except RequestError as why:
        refusal = str(why)
    taken = round(time.process_time() - begin, 4)
    return Cell(name, len(problem), load_bound(problem), allocator, top, taken, refusal)


def summary(allocator: str, cells: Sequence[Cell]) -> str:
    placed = [c for c in cells if c.allocator == allocator and c.height is not None]
    if not placed:
        return f"| {allocator} | 0 | | | | | |"
    worst = max(placed, key=lambda c: c.ratio)
    at_load = sum(c.height == c.bound for c in placed)
    mean = sum(c.ratio for c in placed) / len(placed)
    seconds = max(c.cpu_seconds for c in placed)
    facts = (allocator, len(placed), at_load, f"{mean:.4f}", f"{worst.ratio:.3f}", worst.problem, f"{seconds:.2f}")
    return "| " + " | ".join(map(str, facts)) + " |"


def report(cells: Sequence[Cell], command: str) -> str:
    names = list(dict.fromkeys(c.problem for c in cells))
    rows = list(dict.fromkeys(c.allocator for c in cells))
    most = max((c.buffers for c in cells), default=0)
    refused = Counter((c.allocator, c.refusal) for c in cells if c.refusal)
    reasons = [f"* {allocator}, {count} times: {why}" for (allocator, why), count in refused.items()]
    lines = [
        f"Made by `python benchmarks/field.py {command}`.",
        "",
        "# The field",
        "",
        f"{len(rows)} allocators on {len(names)} problems of up to {most:,} buffers, every placement refereed, one",
        "thread. The load is a lower bound that not every problem allows. Searches stop after",
        f"{SECONDS:g} seconds. The last column is the most CPU seconds for one problem, referee included.",
        "",
        "| allocator | placed | at the load | mean height/load | worst | on | CPU s |",
        "|---|---:|---:|---:|---:|---|---:|",
        *(summary(allocator, cells) for allocator in rows),
        "",
        "## Refused",
        "",
        *reasons,
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--greedy", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.corpus / "problems").is_dir():
        parser.error(f"no problems in {arguments.corpus}")
    names = [name for name, row in ALLOCATORS.items() if not arguments.greedy or row.kind not in SEARCHES]
    cells: list[Cell] = []
    for name, problem in problems(arguments.corpus, arguments.only):
        if len(problem) <= arguments.most:
            cells += [run(name, problem, allocator) for allocator in names]
            print(f"{name}: {sum(c.cpu_seconds for c in cells if c.problem == name):.1f} s", flush=True)
            write(arguments.output, cells, " ".join(sys.argv[1:]))


def write(output: Path, cells: Sequence[Cell], command: str) -> None:
    """Both files, after every problem: a run that is broken off leaves a report of what it did."""
    with output.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(f.name for f in fields(Cell))
        writer.writerows(astuple(cell) for cell in cells)
    output.with_suffix(".md").write_text(report(cells, command))


if __name__ == "__main__":
    main()
