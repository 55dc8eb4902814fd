"""Plans a model whose memory is too small: which contents leave it, when, and when they come back.

Contents that wait go to another memory or, if nothing has changed them, only back to where they came from: weights to
flash, at the cost of reading them again. A DMA engine copies while operators run; without --dma the processor copies
between two operators. An independent simulator replays the result with time, and an invalid one is never shown.

A region is NAME:SIZE[@BASE][,KEY=VALUE]...: read=, write= or rate= as bytes per second (80MB/s), latency= (100ns),
align=, reserve=, kind= (ram, tcm, psram, nvm, npu), dma= (yes, no). With --target, a --region of the same name changes
what the table says of it; others are added. Of --dma the keys are channels=, queue=, rate= and latency=.
"""

from argparse import ArgumentParser, Namespace

from modelplan.cli import files, model_options, region_options, terminal
from modelplan.cli.output_options import add_outputs, figures_asked, write_outputs
from modelplan.outputs import render
from modelplan.primitives.errors import RequestError


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    region_options.add_regions(parser)
    parser.add_argument(
        "--dma", metavar="KEY=VALUE,...",
        help="an engine that copies while operators run, like channels=1,queue=4,rate=100MB/s,latency=1us; none: the"
        " processor copies (default: the engine of the target)",
    )  # fmt: skip
    parser.add_argument(
        "--copied-only", metavar="NAME", action="append", default=[],
        help="a region that copies reach and operators do not, like the DRAM beside an accelerator; repeatable",
    )  # fmt: skip
    region_options.add_reader(parser)
    parser.add_argument(
        "--method", choices=("greedy", "exact"), default="greedy",
        help="exact: mixed-integer program with a bound (needs scipy); default: greedy",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="limit of an exact run (default: 60)")
    parser.add_argument("--macs-per-second", type=float, metavar="N", help="how fast operators compute")
    model_options.add_planning(parser)
    outputs = add_outputs(parser, "MovingPlan", "the stays with their addresses", page=True)
    outputs.add_argument(
        "--copies", metavar="FILE.c", help="the copies in C: a table, and a function to call before each operator"
    )


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.json, arguments.csv, arguments.copies, *arguments.draw], [arguments.model])
    figures = figures_asked(arguments, "MovingPlan")
    device = region_options.target_device(arguments)
    regions, dma = region_options.regions_of(arguments, device), region_options.engine_of(arguments.dma, device)
    for name, value in (("--macs-per-second", arguments.macs_per_second), ("--seconds", arguments.seconds)):
        if value is not None and not 0 < value < float("inf"):
            raise RequestError(f"{name} is {value:g}, expected more than 0")
    from modelplan.outputs.reports.moves_report import sections_of
    from modelplan.questions.memories.region_requests import SpillRequest, spill

    same = {name: getattr(arguments, name) for name in ("reader", "method", "seconds", "macs_per_second")}
    asked = {"regions": regions, "dma": dma, "copied_only": tuple(arguments.copied_only), **same}
    layout = spill(model_options.request_of(SpillRequest, arguments, arguments.model, **asked))
    write_outputs(arguments, layout, figures)
    if arguments.copies:
        files.write(arguments.copies, render(layout, "copies"))
    if "-" not in (arguments.json, arguments.csv):
        terminal.show(sections_of(layout))
    return 0
