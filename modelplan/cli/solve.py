"""Places the buffers of a CSV problem (id,lower,upper,size, half-open steps, bytes).

With --capacity it asks "does it fit" (exit 0 or 1), without one it asks for the least. The options --input,
--output and --capacity are minimalloc's.

columns:
  id (or name), lower (or start), size (or bytes), and upper (the first step
  without the buffer) or end (the last step with it); then any of
  alignment     the offset is a multiple of it
  pin           the offset itself
  offset        a placement: `--allocator file` checks it, --fixed keeps it
  hint          an offset to keep where that costs no byte of height
  gaps          3-5 8-9@16:48: not alive in steps 3 to 5, in 8 to 9 only its
                bytes 16 to 48
  kind          tensor or scratch
  group,delta   buffers at fixed distances
  list,position buffers side by side
Cells are divided by commas, semicolons or tabs; steps may be negative.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from modelplan.checking import referee
from modelplan.cli import files, model_options, terminal
from modelplan.cli.drawn_outputs import add_draw, figures_asked, write_figures
from modelplan.cli.progress import ProgressLine
from modelplan.formats import load_table
from modelplan.formats.problem_csv import BufferTable
from modelplan.model import Placement, Problem, bounds
from modelplan.outputs.exchange import buffers_csv as problem_csv
from modelplan.outputs.report import Section, printable
from modelplan.planning.allocators import DEFAULT, place
from modelplan.planning.keeping import keep_offsets
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
    parser.add_argument("--fixed", action="store_true", help="offsets of the table stay; empty cells are free")
    model_options.add_contiguous(parser, "buffers")
    add_draw(parser, "Drawing")
    model_options.add_allocator(parser, "the table's own, checked")
    model_options.add_budget(parser)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    source = arguments.problem or arguments.input
    files.check_outputs([arguments.output, *arguments.draw], [source])
    drawn = figures_asked(arguments, "Drawing") if arguments.draw else []
    table = load_table(source)
    problem = table.problem
    if arguments.fixed:
        problem = with_fixed(problem, table)
    if arguments.capacity is not None:
        problem = replace(problem, capacity=parse_bytes(arguments.capacity))
    if arguments.contiguous:
        problem = listed(problem, arguments.contiguous)
    from_file = arguments.allocator == option_files.FROM_FILE
    placement = stored(table, problem) if from_file else hinted(problem, table, search(problem, arguments))
    fits = problem.capacity is None or bounds.height(problem, placement) <= problem.capacity
    if arguments.output and fits:
        text = problem_csv.write(problem, placement) if table.as_it_stands else table.with_offsets(placement)
        files.write(arguments.output, text)
    if drawn:
        from modelplan.answers.drawing import of_problem

        write_figures(drawn, of_problem(Path(source).stem, problem, placement))
    if arguments.output != "-":
        shown = section(source, problem, placement)
        terminal.show([replace(shown, lines=(*shown.lines, *remarks(table, placement, arguments)))])
    return 0 if fits else 1


def with_fixed(problem: Problem, table: BufferTable) -> Problem:
    """The problem in which the offsets of the table are pins.

    Raises:
        RequestError: the table has no column `offset`, or one of its offsets breaks the alignment.
    """
    offsets = table.offsets("offset")
    if offsets is None:
        raise RequestError(f"--fixed: {table.path} has no column 'offset'")
    try:
        return replace(problem, pin=np.where(offsets >= 0, offsets, problem.pin))
    except ValueError as reason:
        raise RequestError(f"--fixed: {reason}") from None


def hinted(problem: Problem, table: BufferTable, placement: Placement) -> Placement:
    """A placement as low as `placement` that keeps more of the offsets in the column `hint`."""
    hints = table.offsets("hint")
    return placement if hints is None else keep_offsets(problem, hints, placement)


def remarks(table: BufferTable, placement: Placement, arguments: Namespace) -> list[str]:
    """What became of the offsets and hints of the table."""
    lines, hints = [], table.offsets("hint")
    if "offset" in table.columns and not arguments.fixed and arguments.allocator != option_files.FROM_FILE:
        lines.append("the column 'offset' is not used; --fixed keeps its offsets")
    if hints is not None and arguments.allocator != option_files.FROM_FILE:
        kept = int((hints == placement.offsets)[hints >= 0].sum())
        lines.append(f"{kept:,} of {counted(int((hints >= 0).sum()), 'hint')} kept")
    return lines


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


def stored(table: BufferTable, problem: Problem) -> Placement:
    """The offsets that the table has, checked, with the load bound.

    Raises:
        RequestError: the table has no column `offset`.
        BrokenPlanError: the offsets do not solve the problem.
    """
    offsets = table.offsets("offset")
    if offsets is None:
        raise RequestError(f"--allocator {option_files.FROM_FILE}: {table.path} has no column 'offset'")
    found = Placement(offsets)
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
