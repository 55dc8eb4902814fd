"""Rewrites a .tflite or .onnx model so that it fits on an unmodified TFLM or ONNX Runtime, with equal results.

The rungs of a ladder are tried from the cheapest: the unmodified file; its best order; an offline plan with views;
with outputs that run into operands; without TRANSPOSEs that cancel; convolutions that do their own padding; the
largest maps in stripes. The result is proved to compute what the model does, and run beside it where tflite-micro and
ai-edge-litert are installed.
With `--runtime c` the plan becomes plain C that needs no interpreter.
"""

from __future__ import annotations

import shlex
import signal
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan.cli import files, fit_c, fit_onnx, model_options, region_options, terminal
from modelplan.cli.output_options import (
    add_c_array,
    add_draw,
    add_self_test,
    figures_asked,
    outputs_of_c_array,
    write_c_array,
    write_figures,
    write_self_test,
)
from modelplan.cli.terminal import show_line
from modelplan.formats.unpacking import inner_suffix, is_wrapped
from modelplan.outputs.firmware import tflm_sources
from modelplan.outputs.report import Section
from modelplan.outputs.reports import ladder_report
from modelplan.outputs.reports.proof_report import executed_lines
from modelplan.plain_c import C_RUNGS
from modelplan.planning.memories.memory_choice import ShortageError
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_bytes, parse_memory
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.striped_tflite.interface import INTERFACES
from modelplan.rewriting.striped_tflite.rungs import RUNGS, UNPLANNED
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm.abi import ABI_NAMES
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite, read_tflite
from modelplan.runtimes.tflm.history import day_of
from modelplan.runtimes.tflm.kernels import KERNELS
from modelplan.targets.stated_regions import parse_memories

if TYPE_CHECKING:
    from modelplan.rewriting.striped_tflite.ladder import Ladder
    from modelplan.rewriting.striped_tflite.rungs import Rung
    from modelplan.targets.choosing import Chosen
    from modelplan.targets.device import Region

#: Extra multiply-accumulates and time where nothing is said of them.
_MOST_MACS, _MOST_TIME = "10%", "15%"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--budget", "--capacity", metavar="BYTES", help="the cheapest rung that needs no more")
    goal.add_argument("--least", action="store_true", help="the lowest need found")
    region_options.add_memory(
        goal, "one memory, or for TFLM two as 256KiB+8MiB: the planned part fits the first, what stays the second"
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write, of the same kind")
    parser.add_argument(
        "--objective", choices=("arena", "head"), default="arena", help="bytes to minimise (default: the whole arena)"
    )
    _add_build(parser)
    _add_limits(parser)
    parser.add_argument(
        "--without",
        metavar="RUNG,...",
        default="",
        help=f"steps to skip: {', '.join(name for name in RUNGS if name not in UNPLANNED)}; with --runtime c:"
        f" {', '.join(C_RUNGS)}",
    )
    parser.add_argument(
        "--interface",
        choices=INTERFACES,
        default=INTERFACES[0],
        help="type of inputs and outputs: the program converts in place of QUANTIZE and DEQUANTIZE (default: as-is)",
    )
    parser.add_argument("--header", metavar="arena.h", help="also a header with the arena's size and operators")
    add_c_array(parser)
    add_self_test(parser)
    add_draw(parser, "LadderChart")
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="ends the search with the best so far, as Ctrl-C and SIGTERM do"
    )
    parser.add_argument("--force", action="store_true", help="OUT may take the place of MODEL")
    fit_c.configure(parser)
    fit_onnx.configure(parser)


def _add_build(parser: ArgumentParser) -> None:
    """Declares what says how the runtime is built."""
    parser.add_argument(
        "--abi", choices=ABI_NAMES, help="32 or 64: any ABI of that width (default: the target's, else 32)"
    )
    words = "the kernel library (default: the target's, else as the file says, else all)"
    model_options.add_kernels(parser, words, choices=(*KERNELS, "portable"))
    model_options.add_target(parser)
    parser.add_argument(
        "--tflm", metavar="VERSION", help="the TFLM that will run it: a day like 2025-11-10, or 0.dev20251110"
    )


def _add_limits(parser: ArgumentParser) -> None:
    """Declares what a rewritten file may take more."""
    parser.add_argument(
        "--max-macs", metavar="PERCENT", help="extra multiply-accumulates (default: 10%%; .onnx: 25%%; plain C: none)"
    )
    parser.add_argument(
        "--max-time",
        metavar="PERCENT",
        help="extra time of an invocation, estimated for reference kernels (default: 15%%; plain C: none)",
    )
    parser.add_argument("--max-ops", metavar="N", type=int, help="operators of the file")
    parser.add_argument("--max-flash", metavar="BYTES", help="bytes of the file")


def run(arguments: Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the best so far is kept
    files.check_outputs([arguments.output], [arguments.model], force=arguments.force)
    others = [arguments.header, arguments.self_test, *outputs_of_c_array(arguments.c_array), *arguments.draw]
    files.check_outputs(others, [arguments.model, arguments.output])
    second = _second_memory(arguments) if arguments.memory else None
    work = arguments.max_macs, arguments.max_time
    if arguments.runtime == C.name:
        return fit_c.fit_file(arguments, [share(text or "0") for text in work], show_line)
    fit_c.check_runtime(arguments)
    if is_wrapped(arguments.model) and inner_suffix(arguments.model) == ".onnx":
        raise RequestError(f"{arguments.model}: fit takes an .onnx file that lies beside its weights; unpack it first")
    if arguments.model.lower().endswith(".onnx"):
        most = share(arguments.max_macs) if arguments.max_macs else None
        return fit_onnx.fit_file(arguments, most, show_line)
    return fit_tflite(arguments, second)


def _second_memory(arguments: Namespace) -> Region | None:
    """The second memory that --memory names; the first becomes the budget, for the planned part where there are two."""
    first, *others = parse_memories(arguments.memory)
    arguments.budget = str(first.size)
    if others and (arguments.runtime == C.name or not arguments.model.endswith(".tflite") or len(others) > 1):
        raise RequestError("--memory of two is for TFLM, which has two arenas; `modelplan memories` plans all else")
    arguments.objective = "head" if others else arguments.objective
    return others[0] if others else None


def fit_tflite(arguments: Namespace, second: Region | None = None) -> int:
    """Runs the command for a file that TFLM runs; what stays fits a second memory where there is one."""
    fit_onnx.check_format(arguments)
    files.check_suffix(arguments.output, ".tflite")
    figures = figures_asked(arguments, "LadderChart")
    chosen = model_options.chosen_target(arguments)
    request = request_of(arguments, chosen)
    if chosen:
        terminal.show([Section("", tuple(model_options.target_lines(chosen)))])
    ladder = fit(request, show_line)
    show_line("")
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
        max_macs=share(arguments.max_macs or _MOST_MACS),
        max_ops=arguments.max_ops,
        max_flash=parse_bytes(arguments.max_flash) if arguments.max_flash else None,
        without=frozenset(word.strip() for word in arguments.without.split(",") if word.strip()),
        seed=arguments.seed,
        tflm=day_of(arguments.tflm) if arguments.tflm else None,
        max_time=share(arguments.max_time or _MOST_TIME),
        seconds=arguments.seconds,
        interface=arguments.interface,
    )


def share(text: str) -> float:
    """A share written as a percentage or as a number.

    >>> share("10%"), share("0.1")
    (0.1, 0.1)
    """
    try:
        fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction < float("inf"):
        raise RequestError(f"cannot read {text!r} as a share; expected a number like 10% or 0.1")
    return fraction
