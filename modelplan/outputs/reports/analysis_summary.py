"""The short report of `analyze`: what the file is, the number, the peak, what would lower it; at most 25 lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os.path import commonpath, relpath
from pathlib import Path

from modelplan.answers.analysis import Analysis, ComparedFile, RunFile, SizedFile
from modelplan.answers.explanation import Suggestion
from modelplan.answers.summary import summary
from modelplan.model import Graph, SessionMemory
from modelplan.outputs.report import Pasted, Report, Section, Table, folded, folded_apart
from modelplan.outputs.reports.analysis_report import (
    ROWS_IN_PARTS,
    explain_command,
    fit_command,
    reasons_sections,
    requirement_section,
)
from modelplan.primitives.units import counted
from modelplan.runtimes.c import C

#: Rows of the tables of what is alive, of settings, and of changes.
_ROWS = 3
#: Where the table of kernel libraries has more rows than this, one change less is shown.
_LONG_TABLE = 5
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
    title = f"{of} at step {figures.peak_step}: {folded(figures.peak_op)}, {figures.activations:,} bytes alive"
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
    """The changes that are shown, most saved first: what each saves, and the commands below it."""
    rows = []
    for suggestion in _shown(analysis):
        cost = "" if suggestion.free else f" ({suggestion.costs[0]})"
        commands = [Pasted(f"  {' && '.join(suggestion.commands)}")] if suggestion.commands else []
        rows.append((suggestion.saved, f"{suggestion.saved:,} bytes less: {suggestion.name}{cost}", commands))
    most = analysis.fit_saves_at_most
    if most >= _worth_showing(analysis):
        how = f"up to {most:,} bytes less: order, overlaps, stripes; takes time to try"
        how = ROWS_IN_PARTS if analysis.target.runtime.name == C.name else how
        rows.append((most, how, [Pasted(f"  {fit_command(analysis)}")]))
    rows.sort(key=lambda row: -row[0])
    return [line for _, saved, commands in rows for line in (saved, *commands)]


def _shown(analysis: Analysis) -> list[Suggestion]:
    """The change that saves most of those that a command carries out, and the one of those that need more than that."""
    needed, capacity = analysis.requirement, analysis.capacity
    long = len({(library.arena, library.head, library.tail) for library in needed.libraries}) > _LONG_TABLE
    short = bool(needed.libraries) and capacity is not None and not needed.fits(capacity)
    room = _ROWS - 1 - long - short
    worth = [suggestion for suggestion in analysis.suggestions if suggestion.saved >= _worth_showing(analysis)]
    commanded = [suggestion for suggestion in worth if suggestion.commands][:1]
    return [*commanded, *(suggestion for suggestion in worth if not suggestion.commands)][:room]


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
