"""Plans a model that is larger than the memory of what computes it: weights come from a host, layer by layer.

Part of the memory keeps weights from run to run, part holds activations, the rest is a window through which the other
weights stream while operators compute. The table shows what a run takes in each memory at each rate of the link, and
the rate at which the link is no limit. With --memory the layout gets addresses and is replayed by the simulator; in
less memory than activations and one operator's weights need, activations wait on the host too.

Only shapes are read: the files of a model's external data need not exist.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from modelplan.byte_counts import parse_bytes, parse_nanoseconds, parse_rate
from modelplan.cli import model_options, terminal
from modelplan.cli.drawn_outputs import add_outputs, check_outputs, write_outputs
from modelplan.errors import RequestError


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="an .onnx or .tflite file")
    device = parser.add_argument_group("device and link")
    device.add_argument("--memory", metavar="BYTES", help="what the device has, such as 2GiB: its layout is replayed")
    device.add_argument(
        "--link", metavar="RATE", action="append", required=True, help="from the host, like 16GB/s; repeatable"
    )
    device.add_argument("--latency", metavar="TIME", default="10us", help="of each copy (default: 10us)")
    device.add_argument("--queue", metavar="N", type=int, default=64, help="copies under way at most (default: 64)")
    device.add_argument(
        "--macs-per-second", metavar="N", type=float, required=True, help="multiply-accumulates, like 1e13"
    )
    device.add_argument(
        "--memory-rate", metavar="RATE", help="of the device's own memory, like 400GB/s; an operator takes the longer"
    )
    device.add_argument("--points", metavar="N", type=int, default=13, help="memories of the curve (default: 13)")
    model_options.add_planning(parser)
    add_outputs(parser, "the curve")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    check_outputs(arguments, [arguments.model])
    if not 0 < arguments.macs_per_second < float("inf"):
        raise RequestError(f"--macs-per-second is {arguments.macs_per_second:g}, expected more than 0")
    for name, value, least in (("--queue", arguments.queue, 1), ("--points", arguments.points, 2)):
        if not least <= value <= 1000:
            raise RequestError(f"{name} is {value}, expected from {least} to 1000")
    rates = [parse_rate(text) for text in dict.fromkeys(arguments.link)]
    wait, memory = (
        parse_nanoseconds(arguments.latency),
        None if arguments.memory is None else parse_bytes(arguments.memory),
    )
    own = None if arguments.memory_rate is None else parse_rate(arguments.memory_rate)
    from modelplan import pipeline
    from modelplan.loaders import load_model
    from modelplan.memories.streaming import Link, stream_curve
    from modelplan.outputs.stream_report import sections_of

    graph = load_model(arguments.model, arguments.dim, arguments.shape)
    plan = pipeline.plan(graph, model_options.options_of(arguments, graph))
    links = [Link(rate, arguments.macs_per_second, own, wait, arguments.queue) for rate in rates]
    made = stream_curve(plan, links, memory, arguments.points)
    write_outputs(arguments, made, "stream_report", "stream_chart")
    if "-" not in (arguments.json, arguments.csv):
        terminal.show(sections_of(made))
    return 0
