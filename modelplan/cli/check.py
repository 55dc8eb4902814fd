"""Says whether a model's arena fits a budget: exit 0 when it does, 1 when it does not."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from modelplan import pipeline
from modelplan.cli import model_options, terminal
from modelplan.loaders import load_model
from modelplan.outputs.report import Section
from modelplan.outputs.summary import Summary, summary
from modelplan.outputs.units import human, parse_bytes


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    parser.add_argument("--budget", metavar="BYTES", required=True, help="such as 64KiB or 1MiB")
    model_options.add_planning(parser)
    model_options.add_allocator(parser)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    budget = parse_bytes(arguments.budget)
    graph = load_model(arguments.model, arguments.dim, arguments.shape)
    options = replace(model_options.options_of(arguments, graph), capacity=budget)
    figures = summary(pipeline.plan(graph, options))
    terminal.show([verdict(arguments.model, figures, budget)])
    return 0 if figures.arena <= budget else 1


def verdict(model: str, figures: Summary, budget: int) -> Section:
    """Required, available and excess bytes, and whether a better plan could still fit."""
    excess = figures.arena - budget
    lines = [f"required  {human(figures.arena)}", f"available {human(budget)}"]
    if excess <= 0:
        return Section(f"{model}: fits", (*lines, f"spare     {human(-excess)}"))
    lines.append(f"excess    {human(excess)}")
    if figures.lower_bound > budget:
        lines.append(f"no placement of this order fits: at least {human(figures.lower_bound)} are alive at once")
        lines.append(f"at step {figures.peak_step}, {figures.peak_op}")
    return Section(f"{model}: does not fit", tuple(lines))
