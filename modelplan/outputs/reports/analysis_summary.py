"""The short report of `analyze`: what the file is, the number, the peak, what would lower it; at most 25 lines."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os.path import commonpath, relpath
from pathlib import Path

from modelplan.answers.analysis import Analysis, ComparedFile, RunFile, SizedFile
from modelplan.answers.explanation import Suggestion, Way, ways_of
from modelplan.answers.summary import summary
from modelplan.model import Graph, SessionMemory
from modelplan.outputs.report import Pasted, Report, Section, Table, folded, folded_apart
from modelplan.outputs.reports.analysis_report import (
    explain_command,
    reasons_sections,
    requirement_section,
    search_line,
)
from modelplan.primitives.units import counted

#: Rows of the tables of what is alive and of settings.
_ROWS = 3
#: Lines of the whole report, and columns of a line that is not folded: what has no room is left out.
_LINES, _COLUMNS = 25, 76
#: Changes without a command, of those that save most, that may be shown.
_OTHERS = 3
#: Characters of a line above the peak, which may quote names and what a runtime said.
_LONGEST_LINE = 300


def sections_of(analysis: Analysis) -> Report:
    """The short report as a whole."""
    refused = bool(analysis.requirement.refusals)
    peak, advice = ([], []) if refused else (_peak(analysis), _advice(analysis))
    return [_headline(analysis), *peak, *reasons_sections(analysis), *advice]


def summary_sections(stage: SizedFile) -> Report:
    """What a stage adds to the short report of those before it."""
    if isinstance(stage, Analysis):
        return [] if stage.requirement.refusals else _advice(stage)
    if type(stage) is ComparedFile:
        return reasons_sections(stage)
    if type(stage) is RunFile:
        return [] if stage.requirement.refusals else _peak(stage)
    return [_headline(stage)] if type(stage) is SizedFile else []


def _headline(stage: SizedFile) -> Section:
    """The number with what it holds for, under a line that says what the file is."""
    section = requirement_section(stage)
    if stage.requirement.refusals:
        return section
    lines = (line if isinstance(line, Pasted) else folded(line, _LONGEST_LINE) for line in section.lines)
    return replace(section, lines=(_contents(stage), *lines))


def _contents(stage: SizedFile) -> str:
    """Operators, inputs, outputs and the bytes in flash or on disk."""
    graph = stage.file.graph
    ends = " -> ".join(_tensors(graph, ids, name) for ids, name in ((graph.inputs, "input"), (graph.outputs, "output")))
    where = "flash" if stage.requirement.macro else "file"
    return f"{counted(len(graph.ops), 'operator')}; {ends}; {where} {len(stage.file.content):,} bytes"


def _tensors(graph: Graph, ids: Sequence[int], name: str) -> str:
    """The type and shape of a tensor, or how many tensors there are."""
    if len(ids) != 1:
        return counted(len(ids), name)
    tensor = graph.tensors[ids[0]]
    return f"{tensor.dtype} {'x'.join(map(str, tensor.shape)) or 'scalar'}"


def _peak(stage: RunFile) -> Report:
    """The step at which most is alive and the largest buffers there; before it settings of a session that need less."""
    session = stage.requirement.session
    figures = summary(stage.unmodified)
    shown = figures.alive[:_ROWS]
    names = folded_apart([" = ".join(alive.names) for alive in shown])
    rows = [(f"{alive.size:,}", f"{alive.share:.0%}", name) for alive, name in zip(shown, names, strict=True)]
    parts = stage.requirement.macro and stage.requirement.head < figures.height
    of = "Peak of whole maps, of which the plan keeps parts," if parts else "Peak"
    of = "Peak of the planned activations" if session or stage.requirement.measured else of
    nbytes = sum(alive.size for alive in figures.alive)
    title = f"{of} at step {figures.peak_step}: {folded(figures.peak_op)}, {nbytes:,} bytes alive"
    peak = Section(title, (), Table((">", ">", ""), tuple(rows)))
    return [*([_settings(session)] if session else []), peak]


def _settings(session: SessionMemory) -> Section:
    """The settings that lower a session most, with the lines that set the best of them."""
    if not session.others:
        return Section("Less by settings alone: none of those that were tried")
    least = {need.most: need for need in reversed(session.others)}
    lines = [f"{session.usual.most - most:,} bytes less: {least[most].settings}" for most in sorted(least)[:_ROWS]]
    return Section("Less by settings alone (the lines of code: modelplan explain)", tuple(lines))


def _advice(analysis: Analysis) -> Report:
    """The changes that would lower it most, each with its command, and where the rest stands."""
    more = f"{explain_command(analysis)}  # all changes, ranked; analyze --verbose: the whole plan"
    remedies = _remedies(analysis)
    return [Section("What would lower it" if remedies else "", (*remedies, Pasted(more)))]


def _remedies(analysis: Analysis) -> list[str]:
    """The changes that are shown, the least change first: what each saves, and its commands below it."""
    left, shown = _LINES - _lines_above(analysis), list[tuple[Way, str, list[str]]]()
    for way, words, commands in _candidates(analysis):
        lines = 1 + (len(words) > _COLUMNS) + len(commands)
        if lines <= left:
            left -= lines
            shown.append((way, words, commands))
    shown.sort(key=lambda row: row[0])
    return [line for _, words, commands in shown for line in (words, *(Pasted(f"  {c}") for c in commands))]


def _candidates(analysis: Analysis) -> Iterator[tuple[Way, str, list[str]]]:
    """What could be shown, the most useful first: for each way its largest saving by a command, then others."""
    needed, capacity = analysis.requirement, analysis.capacity
    short = capacity is not None and not needed.fits(capacity)
    worth = [suggestion for suggestion in analysis.suggestions if suggestion.saved >= _worth_showing(analysis)]
    commanded = [change for change in worth if change.commands and change.way is not Way.MODEL]
    best = {change.way: change for change in sorted(commanded, key=lambda change: change.saved)}
    rows = {way: (way, _saving(change), [" && ".join(change.commands)]) for way, change in best.items()}
    for search in analysis.searches:
        if short or search.way is not Way.FILE or Way.KERNELS not in rows:  # a file for kernels that are named is less
            rows[search.way] = search.way, search_line(search), [search.command]
    fitting = [change.way for change in ways_of(best.values(), capacity)] if short and capacity is not None else []
    order = (*fitting, *([Way.FILE] if short else []), Way.KERNELS, Way.FILE, Way.C_HELD, Way.PLAN)
    yield from (rows[way] for way in dict.fromkeys((*order, *rows)) if way in rows)
    yield from ((change.way, _saving(change), list[str]()) for change in worth[:_OTHERS] if not change.commands)


def _saving(suggestion: Suggestion) -> str:
    cost = "" if suggestion.free else f" ({suggestion.costs[0]})"
    return f"{suggestion.saved:,} bytes less: {suggestion.name}{cost}"


def _lines_above(analysis: Analysis) -> int:
    """Lines of the report before the changes, and the two around them."""
    needed = analysis.requirement
    kinds = len({(library.arena, library.head, library.tail) for library in needed.libraries})
    short = analysis.capacity is not None and not needed.fits(analysis.capacity)
    headline = 4 + len(needed.remarks) + (kinds + 2 if kinds else 0) + (analysis.capacity is not None) + short
    alive = min(_ROWS, len(summary(analysis.unmodified).alive))
    return headline + (2 + alive) + 3  # the peak, and a heading and the last line around the changes


def _worth_showing(stage: SizedFile) -> int:
    """The least bytes that a change must save to be shown: 1 % of the memory."""
    return max(stage.requirement.arena // 100, 1)


def sizes_section(stages: Sequence[SizedFile]) -> Section:
    """What each of several models needs, in a row of its own; whether it fits where a capacity is known."""
    limited = any(stage.capacity is not None for stage in stages)
    folder = commonpath([Path(stage.file.path).parent for stage in stages])
    names = folded_apart([relpath(stage.file.path, folder or ".") for stage in stages])
    rows = tuple(
        (name, *_sizes(stage), *([_fits(stage)] if limited else [])) for name, stage in zip(names, stages, strict=True)
    )
    heads = ("model", ">memory", ">planned", ">file", "for", *(["fits"] if limited else []))
    return Section(f"{counted(len(stages), 'model')} in {folder or '.'}", (), Table(heads, rows))


def _sizes(stage: SizedFile) -> tuple[str, ...]:
    """The memory to declare or to expect, the planned part of it, the bytes of the file, and for what they hold."""
    needed, content = stage.requirement, f"{len(stage.file.content):,}"
    if needed.refusals:
        return ("refused", "", content, needed.refusals[0])
    most = f", {needed.kernels}" if needed.kernels else ""
    return (f"{needed.arena:,}", f"{needed.head:,}", content, f"{stage.target.runtime.name}{most}")


def _fits(stage: SizedFile) -> str:
    if stage.capacity is None:
        return "not known"
    return "yes" if stage.requirement.fits(stage.capacity) else "no"
