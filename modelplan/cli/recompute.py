"""Shows what recomputing dropped values saves: bytes against multiply-accumulates, as a curve.

Each point is a plan of the model in which some operators run more than once; it is placed, refereed and replayed.
With --budget the point of least work within these bytes is chosen (exit 1 if there is none), else the lowest one
within --max-macs.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, placing_options, terminal
from modelplan.cli.output_options import add_draw, figures_asked, write_figures
from modelplan.outputs import FIGURE_KINDS, suffix_of
from modelplan.outputs.report import Section
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_memory, parse_share

if TYPE_CHECKING:
    from modelplan.answers.recomputation import Curve

#: What may be written, by suffix.
_SUFFIXES = (*FIGURE_KINDS, ".json", ".onnx")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file: inference or a training step")
    group = model_options.add_runtime(parser, "planning")
    group.add_argument("--schedule", metavar="NAME", help="the order without repetitions (default: best)")
    group.add_argument("--alias", metavar="MODE", help="runtime, none, views, safe or max (default: as analyze)")
    placing_options.add_allocator(parser)
    model_options.add_abi(parser, default=None)
    model_options.add_target(parser)
    parser.add_argument("--max-macs", metavar="SHARE", default="20%", help="extra work, such as 20%% (the default)")
    parser.add_argument(
        "--budget",
        "--capacity",
        metavar="BYTES",
        help="bytes of the plan, such as 64KiB; exit 1 if none fits (default: the block of the target without what the"
        " runtime keeps)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=30.0,
        metavar="S",
        help="for the exact search of small models, 0: none (default: 30)",
    )
    model_options.add_repeated(
        parser,
        "--out",
        "FILE",
        f"the curve ({', '.join(FIGURE_KINDS)}, .json; - for JSON), or the model of the chosen point (.onnx);"
        " repeatable",
    )
    add_draw(parser, "Front", page=False)


def run(arguments: Namespace) -> int:
    files.check_outputs([*arguments.out, *arguments.draw], [arguments.model])
    for path in arguments.out:
        if path != "-" and Path(path).suffix not in _SUFFIXES:
            raise RequestError(f"--out {path}: expected a name that ends in {', '.join(_SUFFIXES)}")
    figures = figures_asked(arguments, "Front", page=False)
    figures += [(path, suffix_of(path, "Front")) for path in arguments.out if path.endswith(FIGURE_KINDS)]
    if not 0 <= arguments.seconds < float("inf"):
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected 0 or more")
    most, budget = parse_share(arguments.max_macs), None if arguments.budget is None else parse_memory(arguments.budget)
    from modelplan.outputs.reports import recompute_report
    from modelplan.questions.recomputing import RecomputeRequest, recompute

    asked = {"most_work": most, "budget": budget, "seconds": arguments.seconds}
    chosen = model_options.chosen_target(arguments)
    curve = recompute(model_options.request_of(RecomputeRequest, arguments, arguments.model, chosen, **asked))
    if "-" not in arguments.out:
        lines = model_options.target_lines(chosen) if chosen else ()
        terminal.show([*([Section("", tuple(lines))] if lines else []), *recompute_report.sections_of(curve)])
    for path in arguments.out:
        if path == "-" or path.endswith(".json"):
            files.write(path, recompute_report.as_json(curve))
        elif path.endswith(".onnx"):
            _write_model(path, arguments.model, curve)
    if figures:
        from modelplan.outputs.figures.front_chart import of_curve

        write_figures(figures, of_curve(curve))
    return 0 if curve.chosen >= 0 else 1


def _write_model(path: str, source: str, curve: Curve) -> None:
    from modelplan.rewriting.repeated_nodes import write_repeated

    if curve.chosen < 0:
        raise RequestError(f"--out {path}: no point keeps to the bytes that were asked for, so no model is written")
    point = curve.points[curve.chosen]
    content = Path(source).read_bytes()
    files.write(path, write_repeated(content, curve.model, point.plan.graph, point.origins))
