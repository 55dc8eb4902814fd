"""Reports what the unmodified model needs on its runtime, why, and what would need less.

For TensorFlow Lite Micro the number is the arena that the firmware must declare; for other runtimes it is what they
plan for the activations by themselves. Below it stands the best plan of the activations, which --json, --csv, --draw
and --out write; of a file that carries a plan for its runtime it is that plan, unless another one is asked for.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.analysis import Analysis, PlannedFile, SizedFile
from modelplan.answers.page_views import Page, page_of_models
from modelplan.cli import files, model_options, output_options, region_options, terminal
from modelplan.cli.figure_processes import drawing_process, pictures_of
from modelplan.cli.output_options import (
    Figures,
    add_c_array,
    add_draw,
    figures_asked,
    outputs_of_c_array,
    write_c_array,
)
from modelplan.cli.several_targets import show_verdicts
from modelplan.model import Plan
from modelplan.outputs import PAGE, outputs_of, render
from modelplan.outputs.report import Report, Section
from modelplan.outputs.reports.analysis_report import extents_section, stage_sections
from modelplan.outputs.reports.analysis_summary import sizes_section, summary_sections
from modelplan.outputs.reports.verdicts_report import verdicts_section
from modelplan.primitives.copied_processes import Task
from modelplan.primitives.errors import RequestError
from modelplan.questions.analyzing import AnalyzeRequest, analysis_page, analysis_stages
from modelplan.questions.extent_ranges import ranges_of, sized_for_ranges
from modelplan.questions.model_request import ModelRequest
from modelplan.questions.sizing_for_targets import chips_of, target_verdicts, targets_called
from modelplan.targets.stated_regions import parse_memories

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen
    from modelplan.targets.device import Region

#: Shows the next part of a report.
Show = Callable[[Report], None]

#: Ends the name of a file for what TFLM logs of its own plan for the unmodified model file.
_LOG = ".log.ascii"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("models", metavar="MODEL", nargs="+", help="a .tflite or .onnx file, or a folder of them")
    model_options.add_sizing(parser)
    add_draw(
        parser,
        "Plan",
        "; x.ascii in the form of TFLM's log, x.log.ascii the log itself for the unmodified file; x.pftrace for"
        " Perfetto",
    )
    region_options.add_memory(parser, "one memory, or several: what lies where in them, as 256KiB+8MiB")
    parser.add_argument(
        "--fit",
        action="store_true",
        help="beside the verdicts of several targets (--target all; stm32f411,rp2040; stm32f4*): plain C, and the least"
        " change that fits",
    )
    model_options.add_repeated(parser, "--why-not", "TENSOR", "why a tensor shares no memory; may be repeated")
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument(
        "--verbose", action="store_true", help="also the parts of the arena, the plan, its order and what shares memory"
    )
    outputs.add_argument("--json", metavar="FILE", help="the whole plan; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help="buffers with offsets, MiniMalloc's columns; - likewise")
    add_c_array(outputs)
    output_options.add_overlay(outputs, "live, share of the peak, scratch, kept in the tail")
    outputs.add_argument(
        "--out", nargs="?", const="reports", metavar="DIR", help="every output into DIR/MODEL/ (default: reports)"
    )


def run(arguments: Namespace) -> int:
    models, named = files.models_of(arguments.models), [arguments.json, arguments.csv, *arguments.draw]
    named += outputs_of_c_array(arguments.c_array)
    single = [name for name in named if name not in arguments.draw or not name.endswith(PAGE)]
    if len(models) > 1 and any((*single, arguments.overlay, *arguments.why_not)):
        raise RequestError(
            f"{len(models)} models, but --json, --csv, --overlay, --c-array, --why-not and figures of --draw are for"
            f" one; --draw FILE{PAGE} is a page of all"
        )
    if len(models) > 1 and arguments.draw and (arguments.out or arguments.verbose or ranges_of(arguments.dim)):
        raise RequestError(f"--draw of {len(models)} models goes without --out, --verbose and a range of --dim")
    if arguments.out and len({folder_name(model) for model in models}) < len(models):
        raise RequestError("two of the models have the same name, so --out would write one over the other")
    files.check_outputs(named, models)
    output_options.check_overlay(arguments.overlay, models)
    memories = several_memories(arguments)
    several = targets_called(arguments.target) if arguments.target else None
    if several or arguments.fit:
        if not several:
            raise RequestError("--fit is for several targets, such as --target all; for one there is `modelplan fit`")
        return show_verdicts(arguments, models, several)
    chosen = model_options.chosen_target(arguments)
    if chosen and "-" not in (arguments.json, arguments.csv):
        terminal.show([Section("", tuple(model_options.target_lines(chosen)))])
    if models == arguments.models[:1] or arguments.out or arguments.verbose:
        code = terminal.each(models, partial(analyze_model, arguments, chosen=chosen))
        return max(code, terminal.each(models, partial(show_memories, arguments, memories))) if memories else code
    return show_sizes(arguments, models, chosen)


def show_sizes(arguments: Namespace, models: Sequence[str], chosen: Chosen | None) -> int:
    """Shows what each of several models needs as a row of one table, and draws the page of all."""
    sized: list[SizedFile] = []
    pages: dict[str, Page] = {}

    def size(path: str) -> int:
        request = model_options.request_of(AnalyzeRequest, arguments, path, chosen, advice=False)
        stages = analysis_stages(request)
        sized.append(next(stages))
        if arguments.draw:
            pages[path] = analysis_page(request, next(stage for stage in stages if isinstance(stage, PlannedFile)))
        return 1 if sized[-1].requirement.refusals else 0

    code = terminal.each(models, size)
    if sized:
        terminal.show([sizes_section(sized)])
    for output in arguments.draw if pages else ():
        files.write(output, render(page_of_models(tuple(pages.values()), tuple(pages)), PAGE))
    return code


def analyze_model(arguments: Namespace, path: str, chosen: Chosen | None = None) -> int:
    """Shows one model and writes what was asked for."""
    if ranges_of(arguments.dim):
        return show_ranges(arguments, path, chosen)
    writes = (arguments.out, arguments.json, arguments.csv, arguments.overlay, arguments.c_array, *arguments.draw)
    with terminal.shown_in_parts(wait=any(writes)) as show:
        write = write_folder if arguments.out else show_model
        analysis = write(arguments, path, chosen, show)
    if chosen and not any(writes) and analysis.capacity is None and (chips := chips_of(chosen.device.name)):
        request = model_options.request_of(AnalyzeRequest, arguments, path)
        terminal.show([verdicts_section(target_verdicts(request, chips))], more=True)
    return 1 if analysis.requirement.refusals else 0


def several_memories(arguments: Namespace) -> tuple[Region, ...]:
    """The memories that --memory names, the first of which is the capacity; none where it is only one."""
    if not arguments.memory:
        return ()
    if arguments.capacity or arguments.target:
        raise RequestError(
            "--memory states what there is: go without --budget and --target; --kernels and --abi may stand"
        )
    memories = parse_memories(arguments.memory)
    arguments.capacity = str(memories[0].size)
    if len(memories) > 1 and (arguments.json, arguments.csv).count("-"):
        raise RequestError("--memory of several is shown alone; `modelplan memories` writes it as --json or --csv")
    return memories if len(memories) > 1 else ()


def show_memories(arguments: Namespace, memories: tuple[Region, ...], path: str) -> int:
    """Shows what lies where in several memories, and the command that says all of it."""
    from modelplan.outputs.reports.region_report import sections_of
    from modelplan.questions.memories.region_requests import MemoriesRequest, place_in_memories

    request = model_options.request_of(ModelRequest, arguments, path)
    regions = region_options.with_flash(memories, [path])
    plan = place_in_memories(MemoriesRequest((replace(request, capacity=None),), regions))
    words = ("modelplan", "memories", path, "--memory", arguments.memory, *model_options.given_words(arguments))
    more = f"{shlex.join(words)}  # what lies where; --header, --arenas, --linker: for the firmware"
    *placed, _ = sections_of(plan)
    terminal.show([*placed, Section("", (), None, (more,))], more=True)
    return 0


def show_ranges(arguments: Namespace, path: str, chosen: Chosen | None) -> int:
    """Shows what a model needs for each extent of a range."""
    if any((arguments.out, arguments.json, arguments.csv, arguments.overlay, *arguments.draw, *arguments.why_not)):
        raise RequestError("--dim with a range makes a table alone; name one extent for a plan that is written")
    table = sized_for_ranges(model_options.request_of(AnalyzeRequest, arguments, path, chosen))
    terminal.show([extents_section(table)])
    return 1 if all(row.requirement.refusals for row in table.rows) else 0


def write_folder(arguments: Namespace, path: str, chosen: Chosen | None, show: Show) -> Analysis:
    """Shows one model and writes every output into its folder."""
    ends: list[Task] = []
    with drawing_process(next(getattr(arguments, "drawing", iter(())), None)) as begin:
        folder = Path(arguments.out) / folder_name(path)

        def draw(plan: Plan) -> None:
            files.make_folder(folder)
            ends.append(begin(pictures_of(plan, folder)))

        analysis = show_model(arguments, path, chosen, show, draw)
        for suffix, row in outputs_of("Plan").items():  # every other output of the table, as plan.json and so on
            if not row.figure:
                files.write(str(folder / f"plan{suffix}"), render(analysis.plan, suffix))
        for end in ends:
            end()
    return analysis


def show_model(
    arguments: Namespace, path: str, chosen: Chosen | None, show: Show, planned: Callable[[Plan], None] = lambda _: None
) -> Analysis:
    """Shows one model and writes all but --out; `planned` is called with the plan as soon as there is one."""
    drawn = figures_asked(arguments, "Plan", more=(_LOG, ".ascii", ".pftrace"))
    shows = "-" not in (arguments.json, arguments.csv)
    why_not = tuple(arguments.why_not)
    request = model_options.request_of(AnalyzeRequest, arguments, path, chosen, why_not=why_not, advice=shows)
    for stage in analysis_stages(request):
        if type(stage) is SizedFile and any(suffix == _LOG for _, suffix in drawn):
            require_log(stage)
        if shows:
            show(stage_sections(stage) if arguments.verbose else summary_sections(stage))
        if type(stage) is PlannedFile:
            planned(stage.plan)
    assert isinstance(stage, Analysis)
    write_outputs(arguments, drawn, request, stage)
    return stage


def write_outputs(arguments: Namespace, drawn: Figures, request: AnalyzeRequest, analysis: Analysis) -> None:
    """Writes all that was asked for but --out."""
    for output, suffix in ((arguments.json, ".json"), (arguments.csv, ".csv"), *drawn):
        if output and suffix == PAGE:
            files.write(output, render(analysis_page(request, analysis), PAGE))
        elif output:
            files.write(output, planner_log(analysis) if suffix == _LOG else render(analysis.plan, suffix))
    if arguments.c_array:
        write_firmware(arguments.c_array, analysis)
    if arguments.overlay:
        output_options.write_overlay(arguments.overlay, operator_figures(analysis))


def write_firmware(path: str, analysis: Analysis) -> None:
    """The unmodified file as C++ source with the header of its arena."""
    from modelplan.runtimes.tflm.file import read_tflite

    file, target, needed = analysis.file, analysis.target, analysis.requirement
    if not needed.macro or needed.refusals:
        reason = needed.refusals[0] if needed.refusals else f"it is planned for {target.runtime.name}"
        raise RequestError(f"--c-array is for a .tflite file that TFLM runs; {file.path}: {reason}")
    write_c_array(path, read_tflite(file.content, file.path), target.runtime.kernels, target.abi)


def require_log(stage: SizedFile) -> None:
    """Refuses a planner log for a file that TFLM does not plan."""
    file, runtime = stage.file, stage.target.runtime
    if not runtime.offline_plans or file.graph.format != runtime.default_for:
        raise RequestError(f"{_LOG} is what TFLM logs of a .tflite file; {file.path} is planned for {runtime.name}")


def planner_log(stage: SizedFile) -> str:
    """What TFLM built with TF_LITE_SHOW_MEMORY_USE logs of its plan for the unmodified file."""
    from modelplan.outputs.exchange import ascii_map
    from modelplan.runtimes.tflm.arena import planned
    from modelplan.runtimes.tflm.file import read_tflite

    file, target = stage.file, stage.target
    if stage.requirement.refusals:
        raise RequestError(f"{_LOG}: TFLM makes no plan of {file.path}: {stage.requirement.refusals[0]}")
    return ascii_map.planner_log(*planned(read_tflite(file.content, file.path), target.abi, target.runtime.kernels))


def operator_figures(analysis: Analysis) -> Mapping[str, str]:
    """The figures of the plan's operators for Model Explorer; what the runtime keeps for each where it is known."""
    from modelplan.formats.node_keys import node_keys
    from modelplan.outputs.exchange import node_data

    file, target, runtime = analysis.file, analysis.target, analysis.target.runtime
    known = file.graph.format == runtime.default_for and not analysis.requirement.refusals
    kept = runtime.keeps(file.content, file.path, target.abi, runtime.kernels) if known and runtime.keeps else ()
    return node_data.figures_of(analysis.plan, node_keys(file.content, file.graph), kept)


def folder_name(path: str) -> str:
    """The name of the folder for a model's outputs: the file's without its suffix, which never leads elsewhere."""
    name = Path(path).name
    return Path(path).stem if Path(path).stem.strip(".") else f"model {name}"
