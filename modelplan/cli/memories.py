"""Plans models in several memories: every buffer and all weights get a region and an offset.

What operators read and write is counted from the loops of the kernels, and the choice makes them wait for memory as
little as possible. Weights have their home in flash where there is one and are read there in place, or copied to a
faster memory once, before the first run. Several models run one after the other and share what dies.

A region is NAME:SIZE[@BASE][,KEY=VALUE]...: read=, write= or rate= as bytes per second (80MB/s), latency= (100ns),
align=, reserve=, kind= (ram, tcm, psram, nvm, npu), dma= (yes, no), reach= (cpu+npu). A region without a rate costs no
time. With --target, a --region of the same name changes what the table says of it; others are added.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.cli.drawn_outputs import add_outputs, check_outputs, write_outputs
from modelplan.errors import RequestError

if TYPE_CHECKING:
    from modelplan.memories.region_plan import RegionPlan
    from modelplan.targets.device import Region
    from modelplan.types import Plan

#: Options that write sources, with the functions that make them.
_SOURCES = {"header": "c_header", "linker": "linker_sections", "arenas": "tflm_header", "memory_ids": "executorch_ids"}


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("models", metavar="MODEL", nargs="+", help=".tflite or .onnx files; several run in turn")
    parser.add_argument(
        "--region", metavar="NAME:SIZE...", action="append", default=[],
        help="a memory, like sram:256KiB@0x20000000 or psram:8MiB,read=80MB/s,write=40MB/s; repeatable, fastest first",
    )  # fmt: skip
    parser.add_argument(
        "--target", metavar="NAME|FILE", help="the regions of a device of `modelplan targets`, or a file"
    )
    model_options.add_target_details(parser.add_argument_group("target"))
    choice = parser.add_argument_group("choice")
    choice.add_argument(
        "--method", choices=("auto", "exact", "fast"), default="auto",
        help="exact: mixed-integer program (needs scipy); fast: prices; auto: exact where scipy is and the model small",
    )  # fmt: skip
    choice.add_argument(
        "--both-ends",
        action="store_true",
        help="weights and state at the upper end of each region, the rest at the lower",
    )
    choice.add_argument("--reader", metavar="NAME", default="", help="what runs the operators, for regions with reach=")
    choice.add_argument(
        "--macs-per-second", metavar="N", type=float, help="how fast it computes, beside memory accesses"
    )
    model_options.add_budget(choice)  # type: ignore[arg-type]
    model_options.add_planning(parser)
    model_options.add_abi(parser)
    outputs = add_outputs(parser, "a line for each buffer: steps, size, offset, region, address", page=True)
    outputs.add_argument(
        "--header", metavar="FILE.h", help="C: an array in a section for each region, every buffer's address"
    )
    outputs.add_argument("--linker", metavar="FILE.ld", help="for GNU ld: those sections at the regions' addresses")
    outputs.add_argument("--arenas", metavar="FILE.h", help="for TFLM: its two arenas in the sections of two regions")
    outputs.add_argument(
        "--executorch",
        metavar="FILE.json",
        dest="memory_ids",
        help="mem_id and offset of every tensor, as ExecuTorch has it",
    )


def run(arguments: Namespace) -> int:
    """Runs the command."""
    check_outputs(arguments, arguments.models, [getattr(arguments, name) for name in _SOURCES], page=True)
    if arguments.macs_per_second is not None and not arguments.macs_per_second > 0:
        raise RequestError(f"--macs-per-second is {arguments.macs_per_second:g}, expected more than 0")
    regions = _regions(arguments)
    from modelplan.memories.choosing import Choosing
    from modelplan.memories.planning import plan_regions
    from modelplan.outputs.region_report import sections_of

    plans = [_plan(arguments, path) for path in arguments.models]
    budget = model_options.budget_of(arguments)
    how = Choosing(arguments.method, arguments.both_ends, budget)
    made = plan_regions(plans, regions, how, reader=arguments.reader, macs_per_second=arguments.macs_per_second)
    made = _with_arenas(arguments, made)
    _write(arguments, made)
    if "-" not in (arguments.json, arguments.csv, *(getattr(arguments, name) for name in _SOURCES)):
        terminal.show(sections_of(made))
    return 0


def _with_arenas(arguments: Namespace, made: RegionPlan) -> RegionPlan:
    """The plan with TFLM's two arenas, where it is one model that TFLM runs."""
    if len(made.plans) > 1 or not made.plans[0].runtime.offline_plans or not arguments.models[0].endswith(".tflite"):
        return made
    from modelplan.memories.arena_regions import with_arenas
    from modelplan.runtimes.tflm.file import load_tflite

    runtime = made.plans[0].runtime
    return with_arenas(made, load_tflite(arguments.models[0]), arguments.abi, runtime.kernels)


def _write(arguments: Namespace, made: RegionPlan) -> None:
    """The files that were asked for."""
    from modelplan.outputs import region_sources
    from modelplan.outputs.page.region_views import layout_html

    sources = {name: getattr(region_sources, function)(made) for name, function in _SOURCES.items()
               if getattr(arguments, name)}  # fmt: skip
    for name, content in sources.items():  # all of them are made before one is written, since they may be refused
        files.write(getattr(arguments, name), content)
    write_outputs(arguments, made, "region_report", "region_map", layout_html)


def _regions(arguments: Namespace) -> tuple[Region, ...]:
    """The regions of the target as the caller changes them, then those that the caller adds.

    Raises:
        RequestError: there are none, two overlap, or external memory states no rate.
    """
    from modelplan.targets.stated_regions import check_regions, parse_region

    known: tuple[Region, ...] = ()
    if arguments.target is not None:
        from modelplan.targets.choosing import device_of

        if arguments.used:
            raise RequestError(
                "--used finds a free block for one arena; for several memories state --reserve REGION=BYTES"
            )
        known = device_of(model_options.wanted_target(arguments))[0].regions
    stated = [parse_region(text, known) for text in arguments.region]
    names = [region.name for region in stated]
    regions = (*({r.name: r for r in stated}.get(one.name, one) for one in known),
               *(r for r in stated if r.name not in {one.name for one in known}))  # fmt: skip
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RequestError(f"two regions are called {twice}")
    if not regions:
        raise RequestError("no memories: name them by --region NAME:SIZE... or --target NAME")
    check_regions(regions)
    for one in regions:
        if one.kind in ("psram", "nvm") and not (one.read_bandwidth or one.bandwidth) and len(regions) > 1:
            raise RequestError(
                f"region {one.name} ({one.kind}) states no rate, so nothing says what an access costs;"
                f" add --region {one.name}:{one.size},read=80MB/s or whatever it is"
            )
    return regions


def _plan(arguments: Namespace, path: str) -> Plan:
    from modelplan import pipeline
    from modelplan.loaders import load_model

    graph = load_model(path, arguments.dim, arguments.shape)
    return pipeline.plan(graph, model_options.options_of(Namespace(**vars(arguments) | {"model": path}), graph))
