"""Plans a model's memory and says what it needs, why, and whether less is possible."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from modelplan import pipeline
from modelplan.cli import files, model_options, terminal
from modelplan.outputs import OUTPUTS, figures, render, text
from modelplan.types import Plan


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    model_options.add_planning(parser)
    model_options.add_allocator(parser)
    parser.add_argument("--capacity", metavar="BYTES", help="the memory there is, such as 64KiB or 1MiB")
    model_options.add_draw(parser)
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="the whole plan; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help="buffers with offsets, MiniMalloc's columns; - likewise")
    outputs.add_argument(
        "--out",
        nargs="?",
        const="reports",
        metavar="DIR",
        help="every output into DIR/MODEL/ (default: reports)",
    )


def run(arguments: Namespace) -> int:
    """Runs the command."""
    drawn = [(path, figures.suffix_of(path)) for path in arguments.draw]
    graph = model_options.load_model(arguments.model, arguments.dim)
    plan = pipeline.plan(graph, model_options.options_of(arguments))
    if "-" not in (arguments.json, arguments.csv):
        terminal.show(text.sections_of(plan))
    for path, suffix in ((arguments.json, ".json"), (arguments.csv, ".csv"), *drawn):
        if path:
            files.write(path, render(plan, suffix))
    if arguments.out:
        write_all(plan, Path(arguments.out) / Path(arguments.model).stem)
    return 0


def write_all(plan: Plan, folder: Path) -> None:
    """Every output of the table into `folder`, as plan.json, plan.map.svg and so on."""
    for suffix in OUTPUTS:
        files.write(str(folder / f"plan{suffix}"), render(plan, suffix))
