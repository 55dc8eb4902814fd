"""`fit --runtime c`: a .tflite or .onnx model becomes a C source and its header."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.cli.output_options import figures_asked, write_figures
from modelplan.outputs.report import Section
from modelplan.plain_c import LAYOUTS, ROUNDINGS, TIME_PER_RAM
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_bytes, parse_memory
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM

if TYPE_CHECKING:
    from modelplan.questions.c_fitting import FitCRequest
    from modelplan.targets.choosing import Chosen

#: Options of files that TFLM runs, with their defaults.
_TFLM_OPTIONS: dict[str, object] = {
    "--objective": "arena", "--abi": None, "--tflm": None, "--max-ops": None, "--header": None, "--c-array": None,
    "--custom": [],
}  # fmt: skip


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments that only plain C takes."""
    group = parser.add_argument_group("plain C (--runtime c)")
    group.add_argument("--runtime", choices=(TFLM.name, C.name), help="c: OUT is a C source, and a header beside it")
    group.add_argument("--input", choices=("held", "rows"), help="rows: the input comes row by row (default: held)")
    group.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="order of an .onnx model's maps at its ends (default: nchw, as the model says)",
    )
    group.add_argument(
        "--rounding",
        choices=ROUNDINGS,
        help="library: an .onnx model's sums of codes round as the library of --kernels does (default: onnx)",
    )
    group.add_argument("--name", metavar="PREFIX", help="what public names begin with (default: the name of OUT)")
    group.add_argument("--section", metavar="NAME", help="the linker section of the buffer")
    words = f"instructions that 1%% of RAM is worth where rows are cut into parts (default: {TIME_PER_RAM:g}%%)"
    group.add_argument("--time-per-ram", metavar="PERCENT", help=words)


def check_runtime(arguments: Namespace) -> None:
    """Refuses options of plain C for other outputs."""
    for name in ("input", "layout", "rounding", "name", "section", "time-per-ram"):
        if getattr(arguments, name.replace("-", "_")):
            raise RequestError(f"--{name} is for --runtime c")


def fit_file(arguments: Namespace, work: Sequence[float], progress: Callable[[str], None]) -> int:
    """Runs the command for plain C, which may add so much `work`, as shares of multiply-accumulates and of time.

    An empty text ends the lines of `progress`.
    """
    from modelplan.outputs.reports import c_ladder_report as report  # here, since other files need none of it
    from modelplan.questions.c_fitting import (
        compiled_rung,
        drawn_rung,
        fit_c,
        fitted_self_test,
        rounding_difference,
    )

    _check_options(arguments)
    header = str(Path(arguments.output).with_suffix(".h"))
    files.check_outputs([header, arguments.self_test], [arguments.model, arguments.output])
    figures = figures_asked(arguments, "Drawing")
    chosen = model_options.chosen_target(arguments)
    if chosen:
        terminal.show([Section("", tuple(model_options.target_lines(chosen)))])
    request = _request(arguments, chosen, work)
    ladder = fit_c(request, progress)
    progress("")
    compiled = compiled_rung(request, ladder)
    verdict = report.c_verdict(ladder, request, compiled)
    terminal.show([report.c_rungs_section(arguments.model, ladder, request), *verdict])
    if ladder.chosen and (rounding := rounding_difference(request)):
        terminal.show([Section("", (f"rounding       {rounding}",))], more=True)
    if ladder.chosen is None:
        show_forms(arguments, request)
        return 1
    test = fitted_self_test(request, ladder) if arguments.self_test else ""
    files.write(arguments.output, ladder.chosen.files.source)
    files.write(header, ladder.chosen.files.header)
    written = f"{arguments.output} and {header}"
    if test:
        files.write(arguments.self_test, test)
        written += f"; the self-test to {arguments.self_test}"
    if figures:
        write_figures(figures, drawn_rung(request, ladder))
    steps = report.next_section(request, ladder.chosen, arguments.self_test or "")
    terminal.show([Section("", (f"written to {written}",)), steps], more=True)
    return 0


def _check_options(arguments: Namespace) -> None:
    """Refuses options that plain C does not take, and values that they cannot have."""
    for option, default in _TFLM_OPTIONS.items():
        if getattr(arguments, option[2:].replace("-", "_")) != default:
            raise RequestError(f"{option} is for files that TFLM runs, not for --runtime c")
    if arguments.kernels not in (None, *C.library_names):
        raise RequestError(f"--kernels {arguments.kernels}: plain C has {', '.join(C.library_names)}")
    if not arguments.output.endswith(".c"):
        raise RequestError(f"{arguments.output}: expected a name that ends in .c")
    for name in ("seed", "seconds"):
        if (getattr(arguments, name) or 0) < 0:
            raise RequestError(f"--{name} is {getattr(arguments, name):g}, expected at least 0")


def show_forms(arguments: Namespace, request: FitCRequest) -> None:
    """Shows which other forms of plain C would fit the budget, if there is one."""
    if request.budget is None:
        return
    from modelplan.outputs.reports import c_ladder_report as report
    from modelplan.questions.fitting_help import forms_that_fit  # here, since few ask for what does not fit

    given = model_options.target_options(arguments).words
    work = ("max_macs", "max_time", "max_flash")
    more = [(f"--{name.replace('_', '-')}", getattr(arguments, name)) for name in work]
    words = tuple(word for option, value in more if value is not None for word in (option, value))
    terminal.show([report.forms_section(forms_that_fit(request, (*given, *words)))], more=True)


def _request(arguments: Namespace, target: Chosen | None, work: Sequence[float]) -> FitCRequest:
    """The request that the options make; a target has as much memory as is not taken."""
    from modelplan.questions.c_fitting import FitCRequest

    stated = parse_memory(arguments.budget) if arguments.budget else None
    if target and stated is None and not arguments.least:
        stated = target.budget
    return FitCRequest(
        arguments.model,
        output=arguments.output,
        budget=stated,
        name=arguments.name or "",
        section=arguments.section or "",
        kernels=arguments.kernels or C.kernels,
        interface=arguments.interface,
        pushed=arguments.input == "rows",
        max_macs=work[0],
        max_time=work[1],
        max_flash=parse_bytes(arguments.max_flash) if arguments.max_flash else None,
        without=frozenset(word.strip() for word in arguments.without.split(",") if word.strip()),
        time_per_ram=_percent(arguments.time_per_ram)
        if arguments.time_per_ram
        else inf
        if arguments.least
        else TIME_PER_RAM,
        seed=arguments.seed,
        layout=arguments.layout or "",
        rounding=arguments.rounding or "",
        dims=tuple(arguments.dim),
        shapes=tuple(arguments.shape),
        seconds=arguments.seconds,
    )


def _percent(text: str) -> float:
    """The number of percents that a text says."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise RequestError(f"--time-per-ram is {text!r}, expected a number of percents like 10%")
    return number
