"""The long report of `analyze`, stage by stage."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from modelplan.answers.analysis import Analysis, ComparedFile, ExtentRow, ExtentTable, RunFile, Search, SizedFile
from modelplan.answers.explanation import Way
from modelplan.model import SessionMemory, bounds
from modelplan.outputs.report import Report, Section, Table
from modelplan.outputs.reports import plan_report
from modelplan.outputs.reports.arena_report import alternatives_section, headline, parts_section, settings_section
from modelplan.outputs.reports.explanation_report import best_lines
from modelplan.primitives.units import human


def stage_sections(stage: SizedFile) -> Report:
    """What a stage adds to the report of those before it."""
    if isinstance(stage, Analysis):
        return _best(stage)
    if isinstance(stage, ComparedFile):
        return _plan(stage)
    if type(stage) is RunFile:
        return _peak(stage)
    if type(stage) is not SizedFile:
        return []
    first = requirement_section(stage)
    return [first] if stage.requirement.refusals else [first, parts_section(stage.requirement)]


def requirement_section(stage: SizedFile) -> Section:
    """What the unmodified file needs, or why its runtime would not run it."""
    first = headline(stage.file.path, stage.requirement, stage.capacity)
    number, *more = _without_session(stage, first.lines)
    if stage.origin:
        number += f"{'; ' if '//' in number else '  // '}{stage.origin}"
    return replace(first, lines=(number, *more, *_fixed_line(stage)))


#: Reasons why rows of a table have no measured figure that are told at most.
_REASONS = 4


def extents_section(table: ExtentTable) -> Section:
    """What a model needs for each of several extents, and whether that fits."""
    columns = ("first run", "later runs", "ort by itself") if table.has_sessions else ("memory",)
    marks = (*(("session",) if table.has_sessions else ()), *(("fits",) if table.capacity is not None else ()))
    headings = (*(f">{name}" for name in (*table.symbols, *columns)), *marks)
    rows = tuple(_extents_row(row, table) for row in table.rows)
    return Section(table.path, tuple(_bases(table)), Table(headings, rows))


def _bases(table: ExtentTable) -> list[str]:
    """For what the figures hold, each once, and why rows have none: of a few reasons the extents of the first row."""
    bases, reasons = dict[str, None](), dict[str, str]()
    for row in table.rows:
        needed = row.requirement
        extents = ", ".join(f"{symbol}={n}" for symbol, n in zip(table.symbols, row.extents, strict=True))
        lines = (*needed.refusals, *([needed.session.note] if needed.session and needed.session.note else ()))
        if not lines and (needed.session or not table.has_sessions):
            bases.setdefault(needed.basis)
        for line in lines or ([] if needed.basis in bases else [needed.basis]):
            reasons.setdefault(line, extents)
    more = [f"{len(reasons) - _REASONS} more reasons"] if len(reasons) > _REASONS else []
    return [*bases, *(f"{extents}: {line}" for line, extents in list(reasons.items())[:_REASONS]), *more]


def _extents_row(row: ExtentRow, table: ExtentTable) -> tuple[str, ...]:
    """The figures of one row, how the session's is known, and whether it fits; without that figure it fits nowhere."""
    needed, session = row.requirement, row.requirement.session
    sizes = [f"{needed.arena:,}"]
    if session:
        sizes = [*map("{:,}".format, (*session.usual.judged_runs, session.by_itself)), _known(session)]
    elif needed.refusals:
        sizes = ["", "", "", "does not run"] if table.has_sessions else ["refused"]
    elif table.has_sessions:
        sizes = ["", "", f"{needed.arena:,}", "no figure"]
    fits = needed.fits(table.capacity or 0) and (session is not None or not table.has_sessions)
    verdict = () if table.capacity is None else ("yes" if fits else "no",)
    return (*map(str, row.extents), *sizes, *verdict)


def _known(session: SessionMemory) -> str:
    return "measured" if session.usual.measured else "predicted"


def _without_session(stage: SizedFile, lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of the headline; where a runtime has sessions and there is no figure of one, the first says so."""
    runtime, needed = stage.target.runtime, stage.requirement
    if needed.session or needed.refusals or not runtime.sorts or stage.file.graph.format != runtime.default_for:
        return lines
    return (f"no figure of a session; {runtime.name} by itself {human(needed.arena)}", *lines[1:])


def _fixed_line(stage: SizedFile) -> list[str]:
    """The inputs and outputs of a session whose file leaves extents open, as the caller has fixed them."""
    options, graph = stage.target.options, stage.file.graph
    if stage.requirement.session is None or not {"--dim", "--shape"}.intersection(options):
        return []
    shapes = [
        ", ".join(f"{graph.tensors[t].name} {list(graph.tensors[t].shape)}" for t in ends)
        for ends in (graph.inputs, graph.outputs)
    ]
    return [f"fixed by {shlex.join(options)}: inputs {shapes[0]}; outputs {shapes[1]}"]


def _peak(stage: RunFile) -> Report:
    """Settings that need less, and the step at which most is alive; nothing for a file that does not run."""
    if stage.requirement.refusals:
        return []
    session = stage.requirement.session
    peak = plan_report.peak_section(stage.unmodified)
    if session:
        title = f"Planned activations, {peak.title[0].lower()}{peak.title[1:]}"
        return [settings_section(session), replace(peak, title=title)]
    return [peak, *_parts_of_tensors(stage)]


def _parts_of_tensors(stage: RunFile) -> Sequence[Section]:
    """A remark where the runtime follows a plan of which the tables of tensors can say nothing."""
    needed, unmodified = stage.requirement, stage.unmodified
    if not needed.macro or needed.head >= bounds.height(unmodified.problem, unmodified.placement):
        return []
    note = (
        f"The plan in the file needs {needed.head:,} bytes: it keeps parts of tensors. The peak above and the planned",
        "activations below are those of whole tensors.",
    )
    return [Section("", note)]


def _plan(stage: ComparedFile) -> Report:
    """The other forms of the file, then the plan, and why tensors share or not.

    Nothing for a file that its runtime would not run.
    """
    if stage.requirement.refusals:
        return []
    others = [alternatives_section(stage.requirement, stage.alternatives)] if stage.alternatives else []
    return [*others, *plan_report.plan_sections(stage.plan, stage.unmodified), *reasons_sections(stage)]


def reasons_sections(stage: ComparedFile) -> Report:
    """Why the tensors that were asked about share bytes or not."""
    return [Section(f"Why {name} shares or not", lines) for name, lines in stage.reasons]


def search_line(search: Search) -> str:
    """What a command searches for and how long; by how much that is less is known behind it."""
    return f"perhaps less: {search.name}, a search of up to about {ample(search.seconds)}"


def ample(seconds: int) -> str:
    """Seconds rounded up, as minutes where they are many.

    >>> ample(23), ample(100)
    ('25 s', '2 minutes')
    """
    return f"{-(-seconds // 5) * 5} s" if seconds <= 60 else f"{-(-seconds // 60)} minutes"


def _best(analysis: Analysis) -> Report:
    """The three changes that would lower it most, of those that take no time to try."""
    if analysis.requirement.refusals:
        return []
    kernels_first = sorted(analysis.suggestions, key=lambda suggestion: suggestion.way is not Way.KERNELS)
    lines, commands = best_lines(kernels_first), [f"{explain_command(analysis)}  # tries the rest"]
    lines += map(search_line, analysis.searches)
    commands = [*(search.command for search in analysis.searches), *commands]
    shown_lines = tuple(lines or ["nothing that takes no time to try"])
    return [Section("What would help most", shown_lines, commands=tuple(commands))]


def explain_command(analysis: Analysis) -> str:
    """The command that explains what the file needs on the target."""
    capacity = () if analysis.capacity is None else ("--capacity", str(analysis.capacity))
    return shlex.join(("modelplan", "explain", analysis.file.path, *analysis.target.words, *capacity))
