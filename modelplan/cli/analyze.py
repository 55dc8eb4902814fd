"""Plans a model's memory and says what it needs, why, and whether less is possible."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from modelplan import pipeline
from modelplan.aliasing.explaining import reasons
from modelplan.cli import files, model_options, terminal
from modelplan.errors import ModelError
from modelplan.loaders import load_model
from modelplan.outputs import OUTPUTS, figures, render, text
from modelplan.outputs.arena_report import arena_section
from modelplan.outputs.report import Section
from modelplan.runtimes.tflm.abi import ABI_NAMES
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.types import Plan


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    model_options.add_planning(parser)
    model_options.add_allocator(parser)
    tflm = parser.add_argument_group("the whole arena of TFLM")
    tflm.add_argument(
        "--abi",
        choices=ABI_NAMES,
        help="the target's, or 32 or 64 for any of so many bits (default: 64, 32 for others)",
    )
    parser.add_argument("--capacity", metavar="BYTES", help="the memory there is, such as 64KiB or 1MiB")
    model_options.add_draw(parser)
    parser.add_argument(
        "--why-not",
        metavar="TENSOR",
        action="append",
        default=[],
        help="why a tensor shares no memory; may be repeated",
    )
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
    graph = load_model(arguments.model, arguments.dim, arguments.shape)
    plan = pipeline.plan(graph, model_options.options_of(arguments, graph))
    if "-" not in (arguments.json, arguments.csv):
        asked = [Section(f"Why {name} shares or not", reasons(plan, name)) for name in arguments.why_not]
        terminal.show([*text.sections_of(plan), *whole_arena(arguments, plan), *asked])
    for path, suffix in ((arguments.json, ".json"), (arguments.csv, ".csv"), *drawn):
        if path:
            files.write(path, render(plan, suffix))
    if arguments.out:
        write_all(plan, Path(arguments.out) / Path(arguments.model).stem)
    return 0


def whole_arena(arguments: Namespace, plan: Plan) -> list[Section]:
    """Head and tail of TFLM's arena, where the plan is for TFLM and the file is one that it could load."""
    if plan.runtime.arena is None or plan.graph.format != plan.runtime.default_for:
        return []
    try:
        model = load_tflite(arguments.model)
    except ModelError as problem:
        return [Section("TFLM's arena", (f"TFLM cannot hold this model: {problem}",))]
    return [arena_section(arguments.model, plan.runtime.arena(model, arguments.abi, plan.runtime.kernels))]


def write_all(plan: Plan, folder: Path) -> None:
    """Every output of the table into `folder`, as plan.json, plan.map.svg and so on."""
    for suffix in OUTPUTS:
        files.write(str(folder / f"plan{suffix}"), render(plan, suffix))
