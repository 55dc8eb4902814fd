"""Plans models in several memories: every buffer and all weights get a region and an offset.

What operators read and write is counted from the loops of the kernels, and the choice makes them wait for memory as
little as possible. Weights have their home in flash where there is one and are read there in place, or copied to a
faster memory once, before the first run. Several models run one after the other and share what dies. A table of
buffers (.csv, .pte, a dump of XLA) is placed too: each buffer counts as written once and read once.

A region is NAME:SIZE[@BASE][,KEY=VALUE]...: read=, write= or rate= as bytes per second (80MB/s), latency= (100ns),
align=, reserve=, kind= (ram, tcm, psram, nvm, npu), dma= (yes, no), reach= (cpu+npu). A region without a rate costs no
time. With --target, a --region of the same name changes what the table says of it; others are added.
"""

from argparse import ArgumentParser, Namespace

from modelplan.cli import files, model_options, placing_options, region_options, terminal
from modelplan.cli.output_options import add_outputs, figures_asked, write_outputs
from modelplan.cli.solve import add_part
from modelplan.formats import is_table
from modelplan.outputs import names_of, render
from modelplan.primitives.errors import RequestError


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "models", metavar="MODEL", nargs="+", help=".tflite or .onnx files; several run in turn; or one table"
    )
    region_options.add_regions(parser)
    add_part(parser)
    choice = parser.add_argument_group("choice")
    choice.add_argument(
        "--method", choices=("auto", "exact", "fast"), default="auto",
        help="exact: mixed-integer program; fast: prices; auto: exact where the model is small",
    )  # fmt: skip
    words = "weights and state at the upper end of each region, the rest at the lower"
    choice.add_argument("--both-ends", action="store_true", help=words)
    region_options.add_reader(choice)
    choice.add_argument(
        "--macs-per-second", metavar="N", type=float, help="how fast it computes, beside memory accesses"
    )
    placing_options.add_budget(choice)  # type: ignore[arg-type]
    model_options.add_planning(parser)
    model_options.add_abi(parser)
    outputs = add_outputs(
        parser, "RegionPlan", "a line for each buffer: steps, size, offset, region, address", page=True
    )
    outputs.add_argument(
        "--header", metavar="FILE.h", help="C: an array in a section for each region, every buffer's address"
    )
    outputs.add_argument("--linker", metavar="FILE.ld", help="for GNU ld: those sections at the regions' addresses")
    outputs.add_argument(
        "--arenas",
        metavar="FILE.h",
        help="for TFLM: its two arenas in the sections of two regions (--draw FILE.arenas.svg draws them)",
    )
    outputs.add_argument(
        "--executorch",
        metavar="FILE.json",
        dest="memory_ids",
        help="mem_id and offset of every tensor, as ExecuTorch has it",
    )


def run(arguments: Namespace) -> int:
    sources = {name: path for name in names_of("RegionPlan") if (path := getattr(arguments, name)) is not None}
    outputs = [arguments.json, arguments.csv, *sources.values()]
    files.check_outputs([*outputs, *arguments.draw], arguments.models)
    figures = figures_asked(arguments, "RegionPlan")
    if arguments.macs_per_second is not None and not arguments.macs_per_second > 0:
        raise RequestError(f"--macs-per-second is {arguments.macs_per_second:g}, expected more than 0")
    table = arguments.models[0] if any(is_table(path) for path in arguments.models) else ""
    if table and (len(arguments.models) > 1 or arguments.json or sources):
        raise RequestError(f"{table} is a table of buffers: it is placed alone, and --csv and --draw show it")
    regions = region_options.regions_of(arguments, region_options.target_device(arguments))
    from modelplan.outputs.reports.region_report import sections_of
    from modelplan.planning.memories.memory_choice import Choosing
    from modelplan.questions.memories.region_requests import MemoriesRequest, place_in_memories
    from modelplan.questions.model_request import ModelRequest

    request = MemoriesRequest(
        tuple(model_options.request_of(ModelRequest, arguments, path) for path in arguments.models if not table),
        regions,
        Choosing(arguments.method, arguments.both_ends, placing_options.budget_of(arguments)),
        arguments.reader,
        arguments.macs_per_second,
        table,
        arguments.part,
    )
    plan = place_in_memories(request)
    contents = [(path, render(plan, name)) for name, path in sources.items()]
    for path, content in contents:  # all of them are made before one is written, since they may be refused
        files.write(path, content)
    write_outputs(arguments, plan, figures)
    if "-" not in outputs:
        terminal.show(sections_of(plan))
    return 0
