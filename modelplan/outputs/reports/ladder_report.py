"""The ladder of a .tflite file as text: its rungs, and what was chosen or why nothing fits."""

from __future__ import annotations

from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import human
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import RUNGS, Goal, Rung
from modelplan.runtimes.tflm.history import LOOPS_WITHOUT_COPIES, Need
from modelplan.runtimes.tflm.kernels import ALL


def rungs_section(name: str, ladder: Ladder, goal: Goal) -> Section:
    """The rungs with what each needs and costs."""
    headings = ("rung", ">arena", ">head", ">tail", ">MACs", ">time", ">operators", ">flash", ">copied", "what changes")
    rows = tuple(
        (
            rung.name + " *" * (rung is ladder.chosen),
            f"{rung.arena:,}",
            f"{rung.head:,}",
            f"{rung.tail:,}",
            f"{100 * (rung.macs - ladder.macs) / max(ladder.macs, 1):+.1f} %",
            f"{rung.time:.2f}",
            f"{rung.ops}",
            f"{len(rung.model):,}",
            f"{rung.copied:,}",
            RUNGS[rung.name],
        )
        for rung in ladder.rungs
    )
    title = f"{name}: {goal.objective} for ABI {goal.abi}, {ladder.kernels} kernels, in bytes"
    lines = ("a file for one kernel library alone can need less: --kernels NAME",) if ladder.kernels == ALL else ()
    return Section(title, lines, Table(headings, rows))


def verdict(ladder: Ladder, goal: Goal) -> list[Section]:
    """What was chosen and what it needs, or why nothing fits."""
    lines = []
    if ladder.chosen is not None:
        lines += [f"stripes        {line}" for line in ladder.chosen.regions]
        lines += _needs(ladder.chosen, goal)
    else:
        what = "no rung meets the caps" if goal.budget is None else f"nothing fits in {human(goal.budget)}"
        lines.append(f"{what}; the least {goal.objective} that was found is {human(ladder.least)}")
        lines += [f"refused        {line}" for rung in ladder.rungs[-1:] for line in rung.refusals]
    if ladder.bound:
        lines.append(
            f"bound          {human(ladder.bound)} of {goal.objective} for every plan of stripes, however rows are cut:"
            f" {ladder.bound_by}"
        )
    if ladder.points:
        lines.append(
            f"               {human(ladder.built_bound)} for the {len(ladder.points):,} plans that were built, wherever"
            " each puts its rows"
        )
    lines += [f"remark         {remark}" for remark in ladder.remarks]
    return [Section("", tuple(lines))] if lines else []


def _needs(rung: Rung, goal: Goal) -> list[str]:
    """What the file asks of TFLM and of the application."""
    lines = []
    if rung.added:
        lines.append(f"new operators  register {', '.join(rung.added)} with MicroMutableOpResolver")
    if rung.needs:
        newest = max(rung.needs, key=lambda need: need.since or LOOPS_WITHOUT_COPIES)
        dates = ", ".join(map(_dated, rung.needs))
        lines.append(f"TFLM           of {newest.since or 'a day that is not known'} or later: {dates}")
    if "WHILE" in rung.added:
        lines.append("               call reset before the inputs are set, never between them and invoke")
        if goal.tflm is None or goal.tflm < LOOPS_WITHOUT_COPIES:
            lines.append(
                f"               before {LOOPS_WITHOUT_COPIES} each iteration of a loop copies its maps onto"
                " themselves, which takes time"
            )
    return lines


def _dated(need: Need) -> str:
    return f"{need.what} {need.since or 'unknown'}"
