"""`fit` for a file that TFLM runs."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.cli.output_options import figures_asked, write_c_array, write_figures, write_self_test
from modelplan.outputs.firmware import tflm_sources
from modelplan.outputs.report import Section
from modelplan.outputs.reports import ladder_report
from modelplan.outputs.reports.proof_report import executed_lines
from modelplan.planning.memories.memory_choice import ShortageError
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_bytes, parse_memory, parse_share
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite, read_tflite
from modelplan.runtimes.tflm.history import day_of

if TYPE_CHECKING:
    from modelplan.rewriting.striped_tflite.ladder import Ladder
    from modelplan.rewriting.striped_tflite.rungs import Rung
    from modelplan.targets.choosing import Chosen
    from modelplan.targets.device import Region

#: Extra multiply-accumulates and time where nothing is said of them.
_MOST_MACS, _MOST_TIME = "10%", "15%"


def fit_file(arguments: Namespace, second: Region | None, progress: Callable[[str], None]) -> int:
    """Runs the command for a file that TFLM runs; what stays fits a second memory where there is one."""
    files.check_suffix(arguments.output, ".tflite")
    figures = figures_asked(arguments, "LadderChart")
    chosen = model_options.chosen_target(arguments)
    request = request_of(arguments, chosen)
    if chosen:
        terminal.show([Section("", tuple(model_options.target_lines(chosen)))])
    ladder = fit(request, progress)
    progress("")
    if ladder.rungs[0].refusals and ladder.chosen is None:
        terminal.show([ladder_report.refused_section(arguments.model, ladder.rungs[0])])
        return 1
    terminal.show(
        [ladder_report.rungs_section(arguments.model, ladder, request), *ladder_report.verdict(ladder, request)]
    )
    if figures:
        from modelplan.outputs.figures.ladder_chart import of_ladder
        from modelplan.questions.pages.plan_views import ladder_page

        chart = of_ladder(arguments.model, ladder, request)
        write_figures(figures, chart, lambda: ladder_page(arguments.model, ladder, request))
    if ladder.chosen is not None:
        if second and ladder.chosen.tail > second.size:
            raise ShortageError(f"what stays takes {ladder.chosen.tail:,} bytes, the second memory has {second.size:,}")
        write_file(arguments, request, ladder, ladder.chosen)
        if second:
            show_arenas(arguments, ladder.kernels)
        return 0
    if request.budget is not None:
        from modelplan.questions.fitting_help import changes_that_fit

        given = model_options.given_words(arguments)
        fitting = changes_that_fit(replace(request, kernels=ladder.kernels), arguments.model, given)
        files_named = arguments.model, arguments.output
        help_section = ladder_report.help_section(ladder, request, files_named, given, fitting)
        terminal.show([help_section], more=True)
    return 1


def show_arenas(arguments: Namespace, kernels: str) -> None:
    """Shows the command that gives each arena of what was written its memory."""
    words = ("modelplan", "memories", arguments.output, "--memory", arguments.memory, "--kernels", kernels)
    arenas = f"{shlex.join(words)} --arenas arenas.h  # its two arenas, each in its memory"
    terminal.show([Section("", (), None, (arenas,))], more=True)


def write_file(arguments: Namespace, request: FitRequest, ladder: Ladder, rung: Rung) -> None:
    """Writes the file of the chosen rung and what was asked for beside it; shows how it was proved and what to do."""
    files.write(arguments.output, rung.model)
    file = read_tflite(rung.model, arguments.output)
    if arguments.header:
        parts = arena(file, request.abi, ladder.kernels)
        header = tflm_sources.arena_header(file, parts, ladder.kernels, rung.added, abi=request.abi)
        files.write(arguments.header, header)
    write_c_array(arguments.c_array, file, ladder.kernels, request.abi, rung.added)
    original = load_tflite(arguments.model) if arguments.self_test else file
    write_self_test(arguments.self_test, original, file, ladder.kernels, request.abi, request.seed)
    executed = executed_lines(ladder.proof, ladder.kernels)
    proved = tuple(f"proof          {v.level}: {v.outcome}, {v.details}" for v in ladder.proof)
    methods, own = tflm_sources.resolver_methods(file)
    methods += [f'AddCustom("{name}", ...)' for name in own]
    array, stated = arguments.c_array or "", model_options.stated_words(arguments)
    steps = ladder_report.next_section(ladder, request, (arguments.model, arguments.output), methods, array, stated)
    terminal.show([Section("", (*executed, *proved, f"written to {arguments.output}")), steps], more=True)


def request_of(arguments: Namespace, chosen: Chosen | None = None) -> FitRequest:
    """The request that the options make; the target gives the bytes, the ABI and the kernels that they leave open."""
    for name in ("max_ops", "seed", "seconds"):
        if (getattr(arguments, name) or 0) < 0:
            raise RequestError(f"--{name.replace('_', '-')} is {getattr(arguments, name)}, expected at least 0")
    if chosen is None and not arguments.least and arguments.budget is None:
        raise RequestError("--budget BYTES, --least or --target NAME has to say what to fit")
    abi, kernels = model_options.build_of(arguments, chosen)
    stated = None if arguments.least else str(chosen.budget) if chosen and not arguments.budget else arguments.budget
    return FitRequest(
        arguments.model,
        budget=parse_memory(stated) if stated else None,
        objective=arguments.objective,
        abi=abi,
        kernels=kernels,
        max_macs=parse_share(arguments.max_macs or _MOST_MACS),
        max_ops=arguments.max_ops,
        max_flash=parse_bytes(arguments.max_flash) if arguments.max_flash else None,
        without=frozenset(word.strip() for word in arguments.without.split(",") if word.strip()),
        seed=arguments.seed,
        tflm=day_of(arguments.tflm) if arguments.tflm else None,
        max_time=parse_share(arguments.max_time or _MOST_TIME),
        seconds=arguments.seconds,
        interface=arguments.interface,
    )
