"""MiniMalloc's original program, our `minimalloc` and our own solver on set A to K: does it fit in this capacity?

    python benchmarks/minimalloc_original.py --binary PATH [--seconds 10]

PATH is the program built from google/minimalloc, or one with its options (--input, --output, --capacity, --timeout)
and its exit code (0: it fits, 1: it does not). Nothing of it is part of this project. Seconds are processor time, one
thread each, one program after the other; `prlimit` of util-linux ends the original. Exits 1 when two of the three
contradict each other, or a packing is wrong.
"""

from __future__ import annotations

import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import reporting

from modelplan import Budget, Placement, Problem, check, height, load_bound, place
from modelplan.formats.problem_csv import read_solution
from modelplan.planning.allocators.systems import minimalloc

CAPACITY = 1_048_576
#: The set also holds an example of five buffers, which is left out.
SMALLEST = 100
PERCENT = (90, 95, 99, 100, 101, 105, 110)

#: Below this many seconds the start of a process weighs more than the search, and a ratio says nothing.
TOO_SHORT = 0.05


@dataclass(frozen=True)
class Answer:
    """ "fits" and "never" are claims, "open" is none; processor seconds."""

    verdict: str
    seconds: float


@dataclass(frozen=True)
class Row:
    """The three answers to one question."""

    name: str
    buffers: int
    bound: int
    capacity: int
    original: Answer
    ours: Answer
    solver: Answer

    @property
    def contradiction(self) -> bool:
        return {"fits", "never"} <= {a.verdict for a in (self.original, self.ours, self.solver)}

    @property
    def ratio(self) -> float | None:
        """Our seconds over the original's, where both answered and it took long enough to measure."""
        answered = "open" not in (self.original.verdict, self.ours.verdict)
        return self.ours.seconds / self.original.seconds if answered and self.original.seconds > TOO_SHORT else None


def ask_original(binary: Path, path: Path, problem: Problem, capacity: int, limit: int) -> Answer:
    with tempfile.NamedTemporaryFile(suffix=".csv") as placed:
        options = [f"--input={path}", f"--output={placed.name}", f"--capacity={capacity}", "--timeout=1h"]
        command = ["prlimit", f"--cpu={limit}", str(binary), *options]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if ran.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return Answer("open", seconds)
        if ran.returncode == 1:
            return Answer("never", seconds)
        if ran.returncode:
            raise SystemExit(f"{binary} ended with {ran.returncode}: {ran.stderr}")
        _, found = read_solution(Path(placed.name))
        assert found is not None
        require_fit(problem, found, capacity)
    return Answer("fits", seconds)


def require_fit(problem: Problem, placement: Placement, capacity: int) -> None:
    check(replace(problem, capacity=None), placement)
    if height(problem, placement) > capacity:
        raise SystemExit(f"a packing of {height(problem, placement)} bytes was said to fit in {capacity}")


def ask_ours(problem: Problem, capacity: int, limit: int) -> Answer:
    begin = time.process_time()
    found = minimalloc.decide(problem, capacity, Budget(seconds=limit))
    seconds = time.process_time() - begin
    if found.ended == "complete":
        require_fit(problem, Placement(found.offsets), capacity)
    return Answer({"complete": "fits", "infeasible": "never"}.get(found.ended, "open"), seconds)


def ask_solver(problem: Problem, capacity: int, limit: int) -> Answer:
    begin = time.process_time()
    found = place(problem, "modelplan", Budget(seconds=limit, enough=capacity))
    seconds = time.process_time() - begin
    if height(problem, found) <= capacity:
        return Answer("fits", seconds)
    return Answer("never" if found.lower_bound > capacity else "open", seconds)


def rows(corpus: Path, binary: Path, limit: int) -> Iterator[Row]:
    for name, given in reporting.problems(corpus, "minimalloc/"):
        if len(given) < SMALLEST:
            continue
        problem, bound = replace(given, capacity=None), load_bound(given)
        for capacity in sorted({CAPACITY, *(bound * percent // 100 for percent in PERCENT)}):
            yield Row(
                Path(name).name[0],
                len(problem),
                bound,
                capacity,
                ask_original(binary, corpus / "problems" / f"{name}.csv", problem, capacity, limit),
                ask_ours(problem, capacity, limit),
                ask_solver(problem, capacity, limit),
            )


def cells_of(row: Row) -> list[str]:
    cells = [row.name, str(row.buffers), f"{row.capacity:,}", f"{100 * row.capacity / row.bound:.1f}"]
    for answer in (row.original, row.ours, row.solver):
        cells += [answer.verdict, f"{answer.seconds:.2f}"]
    return [*cells, "" if row.ratio is None else f"{row.ratio:.2f}"]


HEADINGS = ("set", "buffers", "capacity", "%", "original", "s", "`minimalloc`", "s", "`modelplan`", "s",
            "ours / original")  # fmt: skip


def report(found: Sequence[Row], limit: int) -> Iterator[str]:
    ratios = [row.ratio for row in found if row.ratio is not None]
    slower = [row for row in found if row.ours.verdict == "open" != row.original.verdict]
    yield 'Does it fit in this capacity? "never" is a proof, "open" means that the time was up:'
    yield f"{limit} seconds for each question, processor time for the original and time by the clock for ours. The"
    yield "seconds in the table are processor time, one thread each; `%` is the capacity over the load bound. Every"
    yield "packing was checked."
    yield ""
    yield (
        f"Of {len(ratios)} questions that both answer and that take the original more than {TOO_SHORT:g} s, our"
        f" seconds are {statistics.median(ratios):.2f} of its in the median and {max(ratios):.2f} at most."
        if ratios
        else "No question took the original long enough to compare seconds."
    )
    yield f"Contradictions among the three: {sum(row.contradiction for row in found)}."
    yield f"Answered by the original and left open by `minimalloc`: {len(slower)}."
    yield ""
    yield from reporting.table(HEADINGS, map(cells_of, found), "<>>><><><>>")


PARSER = reporting.command_line(__file__, __doc__, "minimalloc.md")
PARSER.add_argument("--binary", type=Path, metavar="PATH", required=True, help="the original program")
PARSER.add_argument("--seconds", type=int, default=10, help="the time limit of one question")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    found: list[Row] = []
    for row in rows(arguments.corpus, arguments.binary, arguments.seconds):
        found.append(row)
        reporting.progress(reporting.row_line(cells_of(row)))
        lines = report(found, arguments.seconds)
        reporting.save(arguments.output, first, "MiniMalloc, side by side", lines)
    sys.exit(any(row.contradiction for row in found))


if __name__ == "__main__":
    main()
