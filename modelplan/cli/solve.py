"""Places the buffers of a CSV problem (id,lower,upper,size, half-open steps, bytes).

With --capacity it asks "does it fit" (exit 0 or 1), without one it asks for the least. The options --input,
--output and --capacity are minimalloc's.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from modelplan.checking import referee
from modelplan.cli import files, model_options, terminal
from modelplan.cli.drawn_outputs import add_draw, figures_asked, write_figures
from modelplan.cli.progress import ProgressLine
from modelplan.formats import load_problem
from modelplan.model import Placement, Problem, bounds
from modelplan.outputs.exchange import buffers_csv as problem_csv
from modelplan.outputs.report import Section, printable
from modelplan.planning.allocators import DEFAULT, place
from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import counted, human, stand_in
from modelplan.questions import option_files

#: Why a search stopped before the proof.
STOPPED = {"budget": "out of steps", "deadline": "out of time", "cancelled": "interrupted"}


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("problem", nargs="?", metavar="PROBLEM.csv", help="the buffers")
    source.add_argument("--input", metavar="PROBLEM.csv", help="the same, in the words of minimalloc")
    aim = parser.add_mutually_exclusive_group()
    aim.add_argument("--capacity", metavar="BYTES", help="the memory there is, such as 1048576 or 1MiB")
    aim.add_argument(
        "--fragmentation", type=float, metavar="F", help="a search ends at F times the load bound; 1.05: 5 %% above it"
    )
    parser.add_argument("-o", "--output", metavar="OUT.csv", help="the problem with offsets; - for standard output")
    model_options.add_contiguous(parser, "buffers")
    add_draw(parser, "Drawing")
    model_options.add_allocator(parser, "the table's own, checked")
    model_options.add_budget(parser)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    source = arguments.problem or arguments.input
    files.check_outputs([arguments.output, *arguments.draw], [source])
    drawn = figures_asked(arguments, "Drawing") if arguments.draw else []
    problem = load_problem(source)
    if arguments.capacity is not None:
        problem = replace(problem, capacity=parse_bytes(arguments.capacity))
    if arguments.contiguous:
        problem = listed(problem, arguments.contiguous)
    from_file = arguments.allocator == option_files.FROM_FILE
    placement = stored(source, problem) if from_file else search(problem, arguments)
    fits = problem.capacity is None or bounds.height(problem, placement) <= problem.capacity
    if arguments.output and fits:
        files.write(arguments.output, problem_csv.write(problem, placement))
    if drawn:
        from modelplan.answers.drawing import of_problem

        write_figures(drawn, of_problem(Path(source).stem, problem, placement))
    if arguments.output != "-":
        terminal.show([section(source, problem, placement)])
    return 0 if fits else 1


def listed(problem: Problem, path: str) -> Problem:
    """The problem with the contiguous lists in the file.

    Raises:
        RequestError: the lists do not suit the buffers, or the table states lists of its own.
        ModelError: a line names what is no buffer.
    """
    if problem.contiguous:
        raise RequestError(f"--contiguous {path}: the table states lists itself, in its column 'list'")
    try:
        return replace(problem, contiguous=option_files.lists_of(path, problem.names))
    except ValueError as reason:
        raise RequestError(f"--contiguous {path}: {reason}") from None


def stored(source: str, problem: Problem) -> Placement:
    """The offsets that the table has, checked, with the load bound.

    Raises:
        RequestError: the table has no column `offset`.
        BrokenPlanError: the offsets do not solve the problem.
    """
    from modelplan.formats.problem_csv import read_solution

    found = read_solution(Path(source))[1]
    if found is None:
        raise RequestError(f"--allocator {option_files.FROM_FILE}: {source} has no column 'offset'")
    referee.check(replace(problem, capacity=None), found)
    return replace(found, lower_bound=bounds.load_bound(problem))


def search(problem: Problem, arguments: Namespace) -> Placement:
    """The placement, with a line of progress while it takes long; Ctrl-C keeps the best so far."""
    line = ProgressLine()
    budget = replace(model_options.budget_of(arguments, line.listener), enough=enough(problem, arguments.fragmentation))
    try:
        return place(problem, arguments.allocator or DEFAULT, budget)
    finally:
        line.clear()


def enough(problem: Problem, fragmentation: float | None) -> int | None:
    """The height that ends a search: the capacity, or so many times the load bound.

    Raises:
        RequestError: a fragmentation below 1, which nothing can reach.
    """
    if fragmentation is None:
        return problem.capacity
    if not 1 <= fragmentation < math.inf:
        raise RequestError(f"--fragmentation is {fragmentation:g}, expected a number from 1")
    return int(bounds.load_bound(problem) * fragmentation)


def section(source: str, problem: Problem, placement: Placement) -> Section:
    """Height, bound, gap, and the answer to the capacity."""
    height, bound = bounds.height(problem, placement), placement.lower_bound
    proof = "proven optimal" if height == bound else f"gap {height - bound:,} B ({(height - bound) / bound:.2%})"
    if placement.ended in STOPPED and height > bound:
        proof += f"; {STOPPED[placement.ended]}"
    lines = [counted(len(problem), "buffer"), f"height      {human(height)}", f"lower bound {human(bound)}, {proof}"]
    if placement.found_by:
        lines.append(stand_in(placement.found_by, placement.own_height))
    if problem.capacity is not None:
        lines.append(f"capacity    {human(problem.capacity)}: {_verdict(problem.capacity, height, bound)}")
    return Section(printable(source), tuple(lines))


def _verdict(capacity: int, height: int, bound: int) -> str:
    if height <= capacity:
        return "fits"
    return "infeasible, proved by the bound" if bound > capacity else "no placement found that fits; not proved"
