"""Writes a model with its operators in the order that needs the least memory; no other byte of it changes.

A .tflite runs in the order of the file on TFLite and TFLM. ONNX Runtime sorts the nodes of a session by itself, so a
reordered .onnx binds modelplan's own arena and code generators only. The written model is read back and compared.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from modelplan.answers.file_changes import ReorderedFile
from modelplan.cli import files, model_options, placing_options, terminal
from modelplan.formats.unpacking import inner_suffix
from modelplan.model import Plan, bounds
from modelplan.outputs import render
from modelplan.outputs.report import Section, Table
from modelplan.outputs.reports.plan_report import order_line
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human
from modelplan.questions.file_rewrites import reorder
from modelplan.questions.model_request import ModelRequest
from modelplan.rewriting import reordering

_MOST_ROWS = 12


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write, of the same kind")
    parser.add_argument("--figure", metavar="FILE", help="the memory curves before and after, as .svg or .png")
    model_options.add_planning(parser)
    placing_options.add_allocator(parser)
    model_options.add_target(parser)
    parser.add_argument("--force", action="store_true", help="the output may take the place of the input")


def run(arguments: Namespace) -> int:
    suffix = inner_suffix(arguments.model)
    if Path(arguments.output).suffix.lower() != suffix:
        raise RequestError(
            f"{arguments.output}: expected a name that ends in {suffix}, as the model in {arguments.model}"
        )
    files.check_outputs([arguments.output], [arguments.model], force=arguments.force)
    files.check_outputs([arguments.figure], [arguments.model])
    chosen = model_options.chosen_target(arguments)
    reordered = reorder(model_options.request_of(ModelRequest, arguments, arguments.model, chosen))
    files.write(arguments.output, reordered.content)
    if arguments.figure:
        files.write(arguments.figure, render(reordered.after, f".order{Path(arguments.figure).suffix}"))
    terminal.show([verdict(arguments.model, reordered)])
    return 0


def verdict(path: str, reordered: ReorderedFile) -> Section:
    """What the new order saves, how good it is, and which operators moved."""
    before, after = reordered.before, reordered.after
    moved = reordering.moved(after.schedule.order)
    lines = [
        f"peak before     {human(before.schedule.peak)}",
        f"peak after      {order_line(after.schedule)}",
        f"planned before  {human(_planned(before))}",
        f"planned after   {human(_planned(after))}",
    ]
    if reordered.needed_before.macro:
        lines.append(f"arena before    {human(reordered.needed_before.arena)}: {reordered.needed_before.basis}")
        lines.append(f"arena after     {human(reordered.needed_after.arena)}")
    lines.append(f"moved           {len(moved)} of {len(after.graph.ops)} operators")
    step_of = {op: step for step, op in enumerate(after.schedule.order)}
    rows = [(after.graph.label(op), f"{op}", f"{step_of[op]}") for op in moved[:_MOST_ROWS]]
    if len(moved) > _MOST_ROWS:
        rows.append((f"[{len(moved) - _MOST_ROWS} others]", "", ""))
    table = Table(("operator", ">step before", ">step after"), tuple(rows)) if rows else None
    return Section(f"{path}: reordered", tuple(lines), table)


def _planned(plan: Plan) -> int:
    return bounds.height(plan.problem, plan.placement)
