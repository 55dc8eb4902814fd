"""Plans several models in one memory: one arena, every model's place in it, proved, and the saving.

Models may be active at the same time unless you say that they take turns: then they share everything but what they keep
from run to run. A model is active from the moment at which its first input is written until its last output has been
read, so `--in-turn A,B` promises that B's inputs are written when A's outputs have been read, and the other way round.
A model that interrupts another, or runs on another core, does not take turns with it. A pipeline makes an output of one
model the input of another, in the same bytes; its models run one after the other, in the order that is printed.

On TFLM every model keeps what it allocates at the end of the arena (tail): that cannot be shared. `--header` writes a
planner with the address of every buffer, `--files` the models with these addresses as offline plans. Both need one
MicroAllocator, on which all interpreters are allocated before the first input is written. That allocator belongs to one
thread: where models interrupt each other, let them do so between operators.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.shared_plan import SharedPlan, TflmArenas
from modelplan.cli import files, model_options, placing_options, terminal
from modelplan.cli.output_options import Figures, add_draw, figures_asked, write_figures
from modelplan.planning import allocators
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_memory
from modelplan.questions.together.parts import ShareRequest
from modelplan.questions.together.shared_memory import runs_on_tflm, share_memory, tflm_arenas

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "models", metavar="[NAME=]MODEL", nargs="+", help=".tflite or .onnx files; NAME: without ending"
    )
    _add_relation(parser)
    model_options.add_runtime(parser)
    parser.add_argument("--alias", metavar="MODE", help="what one model's tensors share; on tflm as for pack")
    placing_options.add_allocator(parser)
    placing_options.add_budget(parser)
    model_options.add_abi(parser, default=None)
    model_options.add_target(parser)
    parser.add_argument(
        "--capacity",
        "--budget",
        metavar="BYTES",
        help="the memory there is, such as 64KiB: exit 1 if it is too small (default: the block of the target)",
    )
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="all of it with every buffer; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help="the buffers of all models with their offsets")
    outputs.add_argument(
        "--header", metavar="FILE.h", help="for TFLM: the arena's size and a planner with all addresses"
    )
    outputs.add_argument(
        "--files",
        metavar="DIR",
        help="for TFLM: the models with the addresses inside (offline plans, which TFLM takes)",
    )
    add_draw(outputs, "SharedPlan")


def _add_relation(parser: ArgumentParser) -> None:
    """Adds who takes turns, what is handed on, and what is kept."""
    group = parser.add_argument_group("how they run")
    model_options.add_repeated(
        group,
        "--in-turn",
        "A,B,...",
        "of these models never two are active at the same time; `all` stands for all; repeatable",
    )
    model_options.add_repeated(
        group,
        "--pipeline",
        "A:OUT=B:IN",
        "output OUT of A is input IN of B, by name or number (neither where there is but one); repeatable",
    )
    model_options.add_repeated(
        group,
        "--keep",
        "A:TENSOR",
        "an input or output whose bytes nothing else uses, so that it outlives other runs; A:inputs and A:outputs"
        " stand for all; repeatable",
    )


def run(arguments: Namespace) -> int:
    models = dict(_named(arguments.models))
    names = [arguments.json, arguments.csv, arguments.header, *arguments.draw]
    files.check_outputs(names, models.values())
    drawn = figures_asked(arguments, "SharedPlan") if arguments.draw else []
    chosen = model_options.chosen_target(arguments)
    abi, kernels = model_options.build_of(arguments, chosen)
    capacity = parse_memory(arguments.capacity) if arguments.capacity else chosen.known_budget if chosen else None
    request = ShareRequest(
        models,
        in_turn=[group.split(",") for group in arguments.in_turn],
        pipelines=arguments.pipeline,
        keep=arguments.keep,
        runtime=arguments.runtime,
        alias=arguments.alias,
        allocator=arguments.allocator or allocators.DEFAULT,
        abi=abi,
        kernels=kernels or None,
        budget=placing_options.budget_of(arguments),
        dims=arguments.dim,
        shapes=arguments.shape,
        values=arguments.value,
    )
    shared_plan = share_memory(request)
    arenas = tflm_arenas(shared_plan, abi) if runs_on_tflm(shared_plan) else None
    _write(arguments, shared_plan, arenas, drawn)
    needed = arenas.pinned.least if arenas else shared_plan.memory
    fits = capacity is None or needed <= capacity
    _show(arguments, shared_plan, arenas, chosen, capacity, needed)
    return 0 if fits else 1


def _named(words: list[str]) -> list[tuple[str, str]]:
    """Names and paths; a model without a name is called as its file is, without its ending."""
    paths: dict[str, str] = {}
    for word in words:
        name, given, path = word.partition("=")
        if not given or Path(word).exists():
            name, path = Path(word).stem, word
        if not name.strip(".") or name == "all" or set(name) & set(",:=/\\"):
            raise RequestError(f"{word}: expected NAME=MODEL with a name without , : = / \\ that is not `all`")
        if name in paths:
            raise RequestError(f"two models are called {name!r}: {paths[name]} and {path}; name them NAME=MODEL")
        paths[name] = path
    return list(paths.items())


def _write(arguments: Namespace, shared_plan: SharedPlan, arenas: TflmArenas | None, drawn: Figures) -> None:
    from modelplan.outputs.reports import shared_report

    if (arguments.header or arguments.files) and arenas is None:
        raise RequestError("--header and --files are for models that tflm runs: all of them .tflite, on --runtime tflm")
    if arguments.files and arenas and arenas.reason:  # before anything is written
        raise RequestError(f"--files: {arenas.reason}")
    if arenas and arguments.header:
        from modelplan.outputs.firmware.shared_header import shared_header

        files.write(arguments.header, shared_header(shared_plan, arenas))
    if arguments.files and arenas:
        files.make_folder(Path(arguments.files))  # for the models with their plans, called as the caller calls them
        paths = [str(Path(arguments.files) / f"{model.name}.tflite") for model in arenas.files]
        files.check_outputs(paths, [part.path for part in shared_plan.parts])
        for path, model in zip(paths, arenas.files, strict=True):
            files.write(path, model.data)
    if arguments.csv:
        files.write(arguments.csv, shared_report.as_csv(shared_plan))
    if drawn:
        from modelplan.questions.pages.plan_views import shared_page

        write_figures(drawn, shared_plan, lambda: shared_page(shared_plan))


def _show(
    arguments: Namespace,
    shared_plan: SharedPlan,
    arenas: TflmArenas | None,
    chosen: Chosen | None,
    capacity: int | None,
    needed: int,
) -> None:
    """The report, or the JSON document in its place."""
    from modelplan.outputs.report import Section
    from modelplan.outputs.reports import shared_report

    if arguments.json:
        facts = model_options.target_facts(chosen)
        facts |= {} if capacity is None else {"capacity": capacity, "fits": needed <= capacity}
        files.write(arguments.json, shared_report.as_json(shared_plan, arenas, facts))
    if "-" in (arguments.json, arguments.csv, arguments.header):
        return
    report = shared_report.sections_of(shared_plan, arenas)
    if chosen:
        report.insert(0, Section("", tuple(model_options.target_lines(chosen))))
    if capacity is not None:
        report.append(Section(shared_report.verdict(arenas, needed, capacity)))
    terminal.show(report)
