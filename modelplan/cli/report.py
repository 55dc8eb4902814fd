"""Shows the results of `modelplan sweep`: which target fits which model, what each setting needs and takes.

With --against, the runs that an earlier result has too are compared; exit 1 where one needs more, fits no longer or
has no answer any more.
"""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from modelplan.answers.placement_answers import Field, Mark
from modelplan.answers.sweep_summary import SweepFindings
from modelplan.cli import files, terminal
from modelplan.cli.output_options import add_draw, write_figures
from modelplan.outputs import figure_suffixes, suffix_of
from modelplan.outputs.reports import sweep_report
from modelplan.planning import allocators
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import counted, human
from modelplan.primitives.version import __version__
from modelplan.questions.sweeps.run_table import USUAL
from modelplan.questions.sweeps.summing import summarized


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("results", metavar="RESULTS.parquet", help="what `modelplan sweep` wrote")
    parser.add_argument("--against", metavar="OLDER.parquet", help="an earlier result; exit 1 where something is worse")
    also = ", and x.field.svg: each setting by bytes and time"
    add_draw(parser, "SweepMatrix", also, page=False)
    parser.add_argument("--matrix", metavar="FILE", help="every model and target as CSV; - for standard output")
    parser.add_argument("--json", metavar="FILE", help="all of it as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    fields = [path for path in arguments.draw if path.endswith(tuple(figure_suffixes("Field")))]
    figures = [(path, suffix_of(path, "SweepMatrix")) for path in arguments.draw if path not in fields]
    outputs = [*arguments.draw, arguments.matrix, arguments.json]
    files.check_outputs(outputs, [arguments.results, *filter(None, [arguments.against])])
    from modelplan.questions.sweeps.store import read_rows

    older = read_rows(Path(arguments.against)) if arguments.against else None
    findings = summarized(arguments.results, read_rows(Path(arguments.results)), older)
    for path in fields if not findings.settings.plans else ():
        raise RequestError(f"--draw {path}: no model has a plan in every setting, so there is nothing to draw")
    if "-" not in outputs:
        terminal.show(sweep_report.sections(findings))
    if arguments.json:
        files.write(arguments.json, json.dumps({"schema": sweep_report.SCHEMA} | asdict(findings), indent=1) + "\n")
    if arguments.matrix:
        files.write(arguments.matrix, sweep_report.matrix(findings))
    if figures:
        from modelplan.outputs.figures.sweep_matrix import SweepMatrix

        write_figures(figures, SweepMatrix(findings))
    write_figures([(path, suffix_of(path, "Field")) for path in fields], settings_field(findings))
    return int(findings.changes is not None and bool(findings.changes.worse))


def settings_field(findings: SweepFindings) -> Field:
    """The settings by bytes and time."""
    settings = findings.settings
    marks = tuple(
        Mark(cost.name, _kind(cost.allocator), cost.height, round(cost.seconds * 1e6)) for cost in settings.costs
    )
    facts = (
        f"{settings.plans:,} plans by each of {counted(len(marks), 'setting')}  ·  lower bound {human(settings.bound)}"
    )
    if len(marks) == 1:
        facts += "  ·  one setting alone, so there is nothing to compare"
    title = f"{Path(findings.title).name}: memory against time of planning"
    made_by = f"modelplan {__version__}"
    return Field(title, settings.plans, settings.bound, marks, (), made_by, facts)


def _kind(allocator: str) -> str:
    """The kind of an allocator, by which its mark is coloured; "portfolio" for one that is no longer there."""
    name = allocators.DEFAULT if allocator == USUAL else allocator
    return allocators.ALLOCATORS[name].kind if name in allocators.ALLOCATORS else "portfolio"
