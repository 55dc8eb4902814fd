"""Places buffers: of a CSV problem (id,lower,upper,size, half-open steps, bytes), an ExecuTorch program, a dump of XLA.

With --capacity it asks "does it fit" (exit 0 or 1), without one it asks for the least. The options --input,
--output and --capacity are minimalloc's.

A .pte has the memory that ExecuTorch planned, NAME-buffer-assignment.txt that of XLA; the answer stands beside it.

columns of a .csv:
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
  meets         3@-16:0: may share bytes with the buffer of row 3 where its
                offset less the other's is -16 to 0
  apart         7 9: shares no bytes with the buffers of rows 7 and 9
Cells are divided by commas, semicolons or tabs; steps may be negative.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from modelplan.answers.placement_answers import Solution
from modelplan.cli import files, placing_options, terminal
from modelplan.cli.output_options import add_draw, figures_asked, write_figures
from modelplan.cli.terminal import ProgressLine
from modelplan.formats import load_table
from modelplan.formats.buffer_table import BufferTable
from modelplan.formats.problem_csv import with_offsets
from modelplan.outputs import FIGURE_KINDS, PAGE, render
from modelplan.outputs.reports.solution_report import sections_of
from modelplan.planning.allocators import DEFAULT
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import counted, parse_bytes
from modelplan.questions.solving import SolveRequest, solution_of


def configure(parser: ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("problem", nargs="?", metavar="PROBLEM", help="the buffers: .csv, .pte, or a dump of XLA")
    source.add_argument("--input", metavar="PROBLEM.csv", help="the same, in the words of minimalloc")
    add_part(parser)
    aim = parser.add_mutually_exclusive_group()
    aim.add_argument("--capacity", metavar="BYTES", help="the memory there is, such as 1048576 or 1MiB")
    aim.add_argument(
        "--fragmentation", type=float, metavar="F", help="a search ends at F times the load bound; 1.05: 5 %% above it"
    )
    parser.add_argument("-o", "--output", metavar="OUT.csv", help="the problem with offsets; - for standard output")
    parser.add_argument("--fixed", action="store_true", help="offsets of the table stay; empty cells are free")
    placing_options.add_contiguous(parser, "buffers")
    add_draw(parser, "Solution")
    placing_options.add_allocator(parser, "the file's own, checked")
    placing_options.add_budget(parser)


def add_part(parser: ArgumentParser) -> None:
    """Adds the choice of a part of a file that has several."""
    parser.add_argument(
        "--part", metavar="NAME", default="", help="METHOD/MEMORY of a .pte, or the allocation of a dump of XLA"
    )


def run(arguments: Namespace) -> int:
    source = arguments.problem or arguments.input
    files.check_outputs([arguments.output, *arguments.draw], [source])
    if arguments.output and Path(arguments.output).suffix.lower() in (*FIGURE_KINDS, PAGE):
        raise RequestError(f"--output writes a table; --draw {arguments.output} draws the placement")
    drawn = figures_asked(arguments, "Solution") if arguments.draw else []
    table = load_table(source, arguments.part)
    solution = answered(arguments, source, table)
    if arguments.output and solution.fits:
        text = render(solution, ".csv") if table.as_it_stands else with_offsets(table, solution.placement)
        files.write(arguments.output, text)
    write_figures(drawn, solution)
    if arguments.output != "-":
        (shown,) = sections_of(solution)
        terminal.show([replace(shown, lines=(*shown.lines, *remarks(solution, arguments)))])
    return 0 if solution.fits else 1


def answered(arguments: Namespace, source: str, table: BufferTable) -> Solution:
    """The answer, with a line of progress while the search takes long; Ctrl-C keeps the best so far."""
    line = ProgressLine()
    request = SolveRequest(
        source,
        arguments.part,
        None if arguments.capacity is None else parse_bytes(arguments.capacity),
        fixed=arguments.fixed,
        contiguous=arguments.contiguous,
        allocator=arguments.allocator or DEFAULT,
        budget=placing_options.budget_of(arguments, line.listener),
        fragmentation=arguments.fragmentation,
    )
    try:
        return solution_of(table, request)
    finally:
        line.clear()


def remarks(solution: Solution, arguments: Namespace) -> list[str]:
    """What became of the offsets and hints of the file."""
    lines = []
    taken = arguments.fixed or solution.planned is solution.placement
    if not solution.planner and (solution.planned is not None or solution.flaw) and not taken:
        lines.append("the column 'offset' is not used; --fixed keeps its offsets")
    if solution.hints is not None and solution.planned is not solution.placement:
        kept = int((solution.hints == solution.placement.offsets)[solution.hints >= 0].sum())
        lines.append(f"{kept:,} of {counted(int((solution.hints >= 0).sum()), 'hint')} kept")
    return lines
