"""Plans a model that is larger than the memory of what computes it: weights come from a host, layer by layer.

Part of the memory keeps weights from run to run, part holds activations, the rest is a window through which the other
weights stream while operators compute. The table shows what a run takes in each memory at each rate of the link, and
the rate at which the link is no limit. With --memory the layout gets addresses and is replayed by the simulator; in
less memory than activations and one operator's weights need, activations wait on the host too.

Only shapes are read: the files of a model's external data need not exist.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.cli.output_options import add_outputs, figures_asked, write_outputs
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_bytes, parse_nanoseconds, parse_rate

if TYPE_CHECKING:
    from modelplan.planning.memories.streaming import Link


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="an .onnx or .tflite file")
    device = parser.add_argument_group("device and link")
    device.add_argument(
        "--memory", metavar="BYTES",
        help="what the device has, such as 2GiB: its layout is replayed (default: the block of the target)",
    )  # fmt: skip
    device.add_argument(
        "--link", metavar="RATE", action="append", default=[],
        help="from the host, like 16GB/s; repeatable (default: the rate of the target's DMA engine)",
    )  # fmt: skip
    device.add_argument("--latency", metavar="TIME", help="of each copy (default: the target's, else 10us)")
    device.add_argument(
        "--queue", metavar="N", type=int, help="copies under way at most (default: the target's, else 64)"
    )
    device.add_argument(
        "--macs-per-second", metavar="N", type=float, required=True, help="multiply-accumulates, like 1e13"
    )
    device.add_argument(
        "--memory-rate",
        metavar="RATE",
        help="of the device's own memory, like 400GB/s; an operator takes the longer (default: the target's)",
    )
    device.add_argument("--points", metavar="N", type=int, default=13, help="memories of the curve (default: 13)")
    model_options.add_target(parser)
    model_options.add_planning(parser)
    add_outputs(parser, "StreamCurve", "the curve")


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.json, arguments.csv, *arguments.draw], [arguments.model])
    figures = figures_asked(arguments, "StreamCurve", page=False)
    if not 0 < arguments.macs_per_second < float("inf"):
        raise RequestError(f"--macs-per-second is {arguments.macs_per_second:g}, expected more than 0")
    link, memory = _link(arguments)
    for name, value, least in (("--queue", link.queue, 1), ("--points", arguments.points, 2)):
        if not least <= value <= 1000:
            raise RequestError(f"{name} is {value}, expected from {least} to 1000")
    rates = [parse_rate(text) for text in dict.fromkeys(arguments.link)] or [link.rate]
    from modelplan.outputs.reports.stream_report import sections_of
    from modelplan.questions.memories.region_requests import StreamRequest, stream

    links = tuple(replace(link, rate=rate) for rate in rates)
    asked = {"links": links, "memory": memory, "points": arguments.points}
    curve = stream(model_options.request_of(StreamRequest, arguments, arguments.model, **asked))
    write_outputs(arguments, curve, figures)
    if "-" not in (arguments.json, arguments.csv):
        terminal.show(sections_of(curve))
    return 0


def _link(arguments: Namespace) -> tuple[Link, int | None]:
    """What the device computes with and gets weights by, and its memory; what is not stated is that of the target."""
    from modelplan.planning.memories.streaming import Link
    from modelplan.targets.device import Dma

    chosen = model_options.chosen_target(arguments)
    engine = chosen.device.dma if chosen else None
    if not arguments.link and not (engine and engine.bandwidth):
        raise RequestError("--link RATE, or a --target whose DMA engine states one, has to say how fast weights come")
    rate = parse_rate(arguments.link[0]) if arguments.link else (engine or Dma()).bandwidth or 0
    latency, own = 10_000.0, None
    if arguments.latency is not None:
        latency = parse_nanoseconds(arguments.latency)
    elif engine is not None:
        latency = engine.latency_ns
    if arguments.memory_rate is not None:
        own = parse_rate(arguments.memory_rate)
    elif chosen is not None:
        inside = [region for region in chosen.device.regions if chosen.block and region.name in chosen.block.regions]
        known = [region.read_bandwidth or region.bandwidth for region in inside]
        own = min((bandwidth for bandwidth in known if bandwidth), default=None) if all(known) else None
    queue = arguments.queue if arguments.queue is not None else engine.depth if engine else 64
    memory = chosen.budget if chosen else None
    if arguments.memory is not None:
        memory = parse_bytes(arguments.memory)
    return Link(rate, arguments.macs_per_second, own, latency, queue), memory
