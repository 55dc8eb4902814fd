"""The ladder to plain C as text: its rungs, and what was chosen or why nothing fits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from modelplan.outputs.report import Pasted, Section, Table
from modelplan.plain_c import C_RUNGS
from modelplan.plain_c.instruction_counts import CORES
from modelplan.plain_c.ladder import CGoal, CLadder, CRung
from modelplan.plain_c.libraries.cmsis_calls import CMSIS_PATHS
from modelplan.plain_c.libraries.esp_calls import ESP_NN
from modelplan.primitives.units import human

if TYPE_CHECKING:
    from modelplan.answers.explanation import CWay
    from modelplan.checking.verifier.c_compiling import CompiledNetwork
    from modelplan.questions.c_fitting import FitCRequest


#: What is said of a search that somebody ended.
_INTERRUPTED = "interrupted: the best so far"
#: Where the library of some kernels lies, what a compiler is told of it, and what is linked.
_CMSIS = "$MODELPLAN_CMSIS_NN", ' -I "$MODELPLAN_CMSIS_NN/Include"', "link what is in Source there"
_ESP = "$MODELPLAN_ESP_NN", ' -I "$MODELPLAN_ESP_NN/include"', "ESP-IDF links the component esp-nn"
_BUILDS = {**dict.fromkeys(CMSIS_PATHS, _CMSIS), ESP_NN: _ESP, "portable": ("", "", "")}


def c_rungs_section(name: str, ladder: CLadder, goal: CGoal) -> Section:
    """The rungs with what each needs and costs."""
    counted = any(rung.instructions is not None for rung in ladder.rungs)
    rows = tuple(
        (
            rung.name + " *" * (rung is ladder.chosen),
            f"{rung.ram:,}",
            f"{rung.program.nbytes:,}",
            f"{rung.flash:,}",
            *((_millions(rung.instructions),) if counted else ()),
            " + ".join(map(str, rung.fused)) + " operators" if rung.fused else "nothing",
            C_RUNGS[rung.name]
            + (f", {rung.parts} at most" if rung.parts > 1 else "")
            + (f": {rung.macs:.1%} more MACs" if rung.macs else ""),
        )
        for rung in ladder.rungs
    )
    how = "the input comes row by row" if goal.pushed else "the input is held"
    headings = (
        "rung",
        ">RAM",
        ">buffer",
        ">tables",
        *((">instructions",) if counted else ()),
        "runs together",
        "what it adds",
    )
    return Section(f"{name} as plain C, {how}, in bytes", (), Table(headings, rows))


def _millions(instructions: int | None) -> str:
    """Expected instructions, in millions; "unknown" where they are not."""
    if instructions is None:
        return "unknown"
    millions = instructions / 1e6
    return f"{millions:.3f} M" if millions < 1 else f"{millions:.1f} M"


def _instructions(ladder: CLadder) -> list[str]:
    """What a run of the chosen rung is expected to take, and what was not taken for its instructions."""
    rung, dear = ladder.chosen, ladder.dear
    if rung is None or rung.instructions is None:
        return []
    lines = [f"instructions   about {_millions(rung.instructions)} on a {CORES[rung.program.kernels][0]} at -O2"]
    if dear and dear.instructions:
        less, more = rung.ram - dear.ram, dear.instructions / rung.instructions - 1
        lines.append(f"               parts need {less:,} bytes less for {more:.0%} more: --time-per-ram takes them")
    return lines


def forms_section(ways: Sequence[CWay]) -> Section:
    """What other forms of plain C would fit, with their commands."""
    if not ways:
        return Section("", ("no other kernels, ends or rows of plain C fit",))
    lines = [line for way in ways for line in (f"{way.ram:,} bytes: {way.cost}", Pasted(f"  {way.command}"))]
    return Section("What would fit, the least change first", tuple(lines))


def next_section(request: FitCRequest, rung: CRung, self_test: str = "") -> Section:
    """How to compile what was written, to prove it again, and to try it on the device; `self_test` was written too."""
    folder, options, link = _BUILDS.get(rung.program.kernels, _BUILDS["portable"])
    lines = [f"{folder} is the folder of the library: {link}"] if folder else []
    maths = " -lm" if "#include <math.h>" in rung.files.source else ""
    source, model = quote(request.output), quote(request.path)
    onnx = request.path.lower().endswith(".onnx")
    runtime = "ONNX Runtime" if onnx else "TFLM"
    commands = [
        f"cc -std=c99 -O2{options} -c {source}  # {rung.names.header} says how to call it",
        f"modelplan verify {model} --against {source}  # proves it again, and runs it beside {runtime}",
    ]
    if self_test and not folder:
        there = Path(request.output).parent
        include = "" if there == Path(self_test).parent else f" -I {quote(str(there))}"
        build = f"cc -std=c99{include} {quote(self_test)}{maths} -o self_test && ./self_test"
        commands.append(f"{build}  # PASS or FAIL; compile it for the device, too")
    elif not self_test and not onnx:
        lines.append("with --self-test FILE.c also a program that compares every map with TFLM's, on the device too")
    if maths:
        lines.append("link it with -lm")
    return Section("Next", tuple(lines), commands=tuple(commands))


def _scratch(rung: CRung) -> str:
    """What the kernels need of it as working memory."""
    if rung.program.kernels == "portable":
        return "portable kernels need no scratch"
    most = max(rung.program.scratch.values(), default=0)
    if not most:
        return f"kernels of {rung.program.kernels} need no scratch here"
    return f"kernels of {rung.program.kernels} work in up to {most:,} bytes of it"


def c_verdict(ladder: CLadder, goal: CGoal, compiled: CompiledNetwork | None = None) -> list[Section]:
    """What was chosen and what it needs, or why nothing fits."""
    if ladder.chosen is None:
        least = min((rung.ram for rung in ladder.rungs), default=0)
        what = "nothing keeps the caps" if goal.budget is None else f"nothing fits in {human(goal.budget)}"
        stopped = f"; {_INTERRUPTED}" if ladder.interrupted else ""
        return [Section("", (f"{what}; the least RAM of any rung is {human(least)}{stopped}",))]
    rung, program = ladder.chosen, ladder.chosen.program
    ram = (
        human(rung.ram) if rung.ram >= 1024 else f"{rung.ram / 1024:.2f} KiB ({rung.ram:,} B)"
    )  # scripts read the bytes
    lines = [f"RAM            {ram}, all static; {_scratch(rung)}"]
    gap = program.nbytes - program.bound
    placed = (
        "proven: no placement of these rows is lower" if not gap else f"{gap:,} bytes above the bound of these rows"
    )
    lines.append(f"buffer         {human(program.nbytes)}, {placed}")
    if rung.bound is not None:
        over = program.nbytes - rung.bound
        reached = f"{over:,} bytes below" if over else "reached"
        order = " in this order" if program.choices and program.choices.order else ""
        lines.append(f"bound          {human(rung.bound)} for all choices of what runs together{order}: {reached}")
    if compiled:
        flash = f"{compiled.code:,} bytes of code and {compiled.tables:,} of tables"
        lines.append(f"flash          {flash}, by {compiled.compiler}")
        lines.append(f"stack          {compiled.stack:,} bytes at most, by the same")
    lines += _instructions(ladder)
    work = "as in the model: nothing is computed twice"
    if rung.macs:
        work = f"{rung.macs:.1%} more than in the model; about {rung.time:.0%} more time with portable kernels"
    lines.append(f"MACs           {work}")
    if ladder.interrupted:
        lines.append(f"search         {_INTERRUPTED}")
    lines += [f"proof          {v.level}: {v.outcome}, {v.details}" for v in ladder.proof]
    return [Section("", tuple(lines))]
