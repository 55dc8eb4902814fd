"""Plans a model whose memory is too small: which contents leave it, when, and when they come back.

Contents that wait go to another memory or, if nothing has changed them, only back to where they came from: weights to
flash, at the cost of reading them again. A DMA engine copies while operators run; without --dma the processor copies
between two operators. An independent simulator replays the result with time, and an invalid one is never shown.

A region is NAME:SIZE[@BASE][,KEY=VALUE]...: read=, write= or rate= as bytes per second (80MB/s), latency= (100ns),
align=, kind= (ram, tcm, psram, nvm, npu). Of --dma the keys are channels=, queue=, rate= and latency=.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from modelplan.byte_counts import parse_nanoseconds, parse_rate
from modelplan.cli import model_options, terminal
from modelplan.cli.drawn_outputs import add_outputs, check_outputs, write_outputs
from modelplan.errors import RequestError

if TYPE_CHECKING:
    from modelplan.memories.region_layout import Dma
    from modelplan.targets.device import Region


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    parser.add_argument(
        "--region", metavar="NAME:SIZE...", action="append", default=[], required=True,
        help="a memory, like sram:64KiB,rate=400MB/s or psram:8MiB,read=80MB/s,write=40MB/s; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--dma", metavar="KEY=VALUE,...",
        help="an engine that copies while operators run, like channels=1,queue=4,rate=100MB/s,latency=1us",
    )  # fmt: skip
    parser.add_argument(
        "--copied-only", metavar="NAME", action="append", default=[],
        help="a region that copies reach and operators do not, like the DRAM beside an accelerator; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--method", choices=("greedy", "exact"), default="greedy",
        help="exact: mixed-integer program with a bound (needs scipy); default: greedy",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="limit of an exact run (default: 60)")
    parser.add_argument("--macs-per-second", type=float, metavar="N", help="how fast operators compute")
    model_options.add_planning(parser)
    add_outputs(parser, "the stays with their addresses", page=True)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    check_outputs(arguments, [arguments.model], page=True)
    regions, dma = _regions(arguments), None if arguments.dma is None else _dma(arguments.dma)
    for name, value in (("--macs-per-second", arguments.macs_per_second), ("--seconds", arguments.seconds)):
        if value is not None and not 0 < value < float("inf"):
            raise RequestError(f"{name} is {value:g}, expected more than 0")
    from modelplan import pipeline
    from modelplan.loaders import load_model
    from modelplan.memories.moving_plan import moving_plan
    from modelplan.outputs.moves_report import sections_of
    from modelplan.outputs.page import region_views

    graph = load_model(arguments.model, arguments.dim, arguments.shape)
    plan = pipeline.plan(graph, model_options.options_of(arguments, graph))
    made = moving_plan(
        plan, regions, dma, method=arguments.method, copied_only=arguments.copied_only,
        macs_per_second=arguments.macs_per_second, seconds=arguments.seconds,
    )  # fmt: skip
    write_outputs(arguments, made, "moves_report", "moves_map", region_views.layout_html)
    if "-" not in (arguments.json, arguments.csv):
        terminal.show(sections_of(made))
    return 0


def _regions(arguments: Namespace) -> tuple[Region, ...]:
    """The memories.

    Raises:
        RequestError: two have one name or overlap, or --copied-only names none of them.
    """
    from modelplan.targets.stated_regions import check_regions, parse_region

    regions = tuple(parse_region(text, ()) for text in arguments.region)
    check_regions(regions)
    names = [region.name for region in regions]
    for name in arguments.copied_only:
        if name not in names:
            raise RequestError(f"--copied-only {name}: there is no such region; there are: {', '.join(names)}")
    return regions


def _dma(text: str) -> Dma:
    """The engine that `--dma` states.

    Raises:
        RequestError: a key that does not exist or a value that cannot be read.
    """
    from modelplan.memories.region_layout import Dma

    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in ("channels", "queue", "rate", "latency") or key in given:
            raise RequestError(f"--dma: found {part!r}, expected channels=, queue=, rate= or latency=, each once")
        given[key] = value
    counts = {}
    for key, least in (("channels", 1), ("queue", 1)):
        value = given.get(key, str(least))
        if not value.isdecimal() or len(value) > 4 or int(value) < least:
            raise RequestError(f"--dma: {key} is {value!r}, expected a number from {least} to 9999")
        counts[key] = int(value)
    rate = parse_rate(given["rate"]) if "rate" in given else None
    wait = parse_nanoseconds(given["latency"]) if "latency" in given else 0.0
    return Dma(counts["channels"], counts["queue"], rate, wait)
