"""The ladder of a .tflite file as text: its rungs, and what was chosen or why nothing fits."""

from collections.abc import Sequence
from shlex import join, quote

from modelplan.answers.explanation import Suggestion
from modelplan.answers.file_changes import HelpedLibrary
from modelplan.outputs.report import Section, Table
from modelplan.outputs.reports.explanation_report import way_lines
from modelplan.primitives.units import counted, human
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import RUNGS, Goal, Rung
from modelplan.runtimes.tflm.declaration import MACRO
from modelplan.runtimes.tflm.history import LOOPS_WITHOUT_COPIES
from modelplan.runtimes.tflm.kernels import ALL, is_group
from modelplan.runtimes.tflm.kernels.own_kernels import library_of

#: Shares of more work and time that are offered where nothing fits.
_MORE_MACS, _MORE_TIME = 0.2, 0.3


def refused_section(name: str, as_is: Rung) -> Section:
    """Why TFLM does not run the model, so that there is nothing to fit, and how to get one that it runs."""
    remedies = (f"remedy: {remedy}" for remedy in as_is.remedies)
    return Section(f"{name}: the runtime would not run it, so there is nothing to fit", (*as_is.refusals, *remedies))


def rungs_section(name: str, ladder: Ladder, goal: Goal) -> Section:
    """The rungs with what each needs and costs."""
    headings = ("rung", ">arena", ">head", ">tail", ">MACs", ">time", ">ops", ">flash", ">copied/run")
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
        )
        for rung in ladder.rungs
    )
    title = f"{name}: {goal.objective} for ABI {goal.abi}, {library_of(ladder.kernels)} kernels, in bytes"
    lines = ("a file for one kernel library alone can need less: --kernels NAME",) if is_group(ladder.kernels) else ()
    return Section(title, lines, Table(headings, rows))


def verdict(ladder: Ladder, goal: Goal) -> list[Section]:
    """What was chosen and what it needs, or why nothing fits."""
    lines = []
    if ladder.chosen is not None:
        lines += [f"stripes        {line}" for line in ladder.chosen.stretches]
        lines += _needs(ladder.chosen, goal)
    else:
        what = "no rung meets the caps" if goal.budget is None else f"nothing fits in {human(goal.budget)}"
        least = f"the least {goal.objective} that was found is {human(ladder.least)}"
        lines.append(f"{what}; {least}{_lowest(ladder, goal)}")
    if ladder.bound:
        lines.append(
            f"bound          {human(ladder.bound)} of {goal.objective} for every plan of stripes, however rows are cut:"
            f" {ladder.bound_by}"
        )
    if ladder.points:
        until = f", until {', then '.join(ladder.ended)}" if ladder.ended else ""
        lines.append(f"searched       {len(ladder.points):,} plans of stripes{until}")
        lines.append(f"               {human(ladder.built_bound)} at least with each of them")
    if ladder.helped:
        lines.append(f"one library    {helped_line(ladder.helped, 'of arena')}")
    lines += [f"remark         {remark}" for remark in ladder.remarks]
    changed = tuple(f"{rung.name:14} {RUNGS[rung.name]}" for rung in ladder.rungs[1:])
    return [Section("", of) for of in (changed, tuple(lines)) if of]


def _lowest(ladder: Ladder, goal: Goal) -> str:
    """For which libraries the least arena is, and the least with one of them alone."""
    lowest = ladder.lowest
    if lowest is None or goal.objective != "arena" or lowest.arena >= ladder.least:
        return ""
    return f" for all kernel libraries, and {human(lowest.arena)} for --kernels {lowest.name} (rung {lowest.rung})"


def helped_line(helped: HelpedLibrary, what: str) -> str:
    """Which of several libraries a change would help, and why it is not made; `what` the bytes are of."""
    return (
        f"{helped.change} for --kernels {helped.name} has {helped.before - helped.after:,} bytes less {what}; that of"
        f" {helped.raised} would go from {helped.raised_before:,} to {helped.raised_after:,}, so it is not made for all"
    )


def next_section(
    ladder: Ladder,
    goal: Goal,
    names: tuple[str, str],
    methods: Sequence[str],
    array: str = "",
    stated: Sequence[str] = (),
) -> Section:
    """What to do with the file that was written: the arena, the operators, and how to try it on the device.

    `names` are those of the model and of the file, `array` the C++ file that was written of it, `stated` the options
    that state the user's own kernels.
    """
    rung = ladder.chosen
    assert rung is not None
    lines = [
        f"#define {MACRO} {rung.arena}  // {library_of(ladder.kernels)} kernels, ABI {goal.abi}",
        f"{counted(len(methods), 'operator')} in MicroMutableOpResolver<{len(methods)}>: {', '.join(methods)}",
    ]
    if "WHILE" in rung.added:
        lines.append("call Reset before the inputs are set, never between them and Invoke")
    model, out = map(quote, names)
    own = "".join(f" {quote(word)}" for word in stated)
    commands = [f"modelplan verify {model} --against {out} --self-test test.cc  # PASS or FAIL on the device"]
    if stated:  # no kernel here says which outputs to expect
        commands = [f"modelplan verify {model} --against {out}{own}  # the proof again"]
    if array:
        lines.append(f"{array}, and its header with the arena and the operators, are for the firmware")
    else:
        as_source = "as C++, with the arena and the operators in net.h"
        commands.insert(0, f"modelplan analyze {out}{own} --c-array net.cc  # {as_source}")
    return Section("Next", tuple(lines), commands=tuple(commands))


def help_section(
    ladder: Ladder, goal: Goal, names: tuple[str, str], build: Sequence[str], ways: Sequence[Suggestion]
) -> Section:
    """What would fit in the budget where no rewritten file does.

    `names` are those of the model and of the output, `build` the options that named device, kernels and ABI.
    """
    assert goal.budget is not None
    original, output = names
    words = ("modelplan", "explain", original, *build, "--capacity", str(goal.budget))
    more = [f"{join(words)}  # all changes, ranked"]
    if library_of(ladder.kernels) == ALL:
        named = (*build, "--budget", str(goal.budget), "--kernels", "cmsis-nn")
        words = ("modelplan", "fit", original, *named, "-o", output)
        more.append(f"{join(words)}  # for Cortex-M alone; likewise --kernels esp-nn or --target BOARD")
    if (goal.max_macs < _MORE_MACS or goal.max_time < _MORE_TIME) and (ladder.bound or 0) <= goal.budget:
        caps = ("--max-macs", f"{_MORE_MACS:.0%}", "--max-time", f"{_MORE_TIME:.0%}")
        words = ("modelplan", "fit", original, *build, "--budget", str(goal.budget), *caps, "-o", output)
        more.append(f"{join(words)}  # a run may take longer")
    if not ways:
        return Section("No single change that is quick to try fits", commands=tuple(more))
    return Section("What would fit, the least change first", tuple(way_lines(ways)), commands=tuple(more))


def _needs(rung: Rung, goal: Goal) -> list[str]:
    """What the file asks of TFLM and of the application."""
    lines = []
    if rung.added:
        lines.append(f"new operators  register {', '.join(rung.added)} with MicroMutableOpResolver")
    if rung.needs:
        newest = max(rung.needs, key=lambda need: need.since or LOOPS_WITHOUT_COPIES)
        dates = ", ".join(f"{need.what} {need.since or 'unknown'}" for need in rung.needs)
        lines.append(f"TFLM           of {newest.since or 'a day that is not known'} or later: {dates}")
    if "WHILE" in rung.added and (goal.tflm is None or goal.tflm < LOOPS_WITHOUT_COPIES):
        lines.append(
            f"               before {LOOPS_WITHOUT_COPIES} each iteration of a loop copies its maps onto themselves,"
            " which takes time"
        )
    return lines
