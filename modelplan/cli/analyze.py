"""Says what a model needs on its runtime as it stands, why, and what would need less.

For TensorFlow Lite Micro the number is the arena that the firmware must declare; for other runtimes it is what they
plan for the activations by themselves. Below it stands the best plan of the activations, which --json, --csv, --draw
and --out write; of a file that carries a plan for its runtime it is that plan, unless another one is asked for.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.explanation import Suggestion
from modelplan.cli import files, model_options, overlays, terminal
from modelplan.cli.drawing import drawing_process, pictures_of
from modelplan.cli.drawn_outputs import add_draw, figures_asked
from modelplan.model import Alternative, Graph, Plan, Requirement, Runtime, bounds
from modelplan.outputs import PAGE, outputs_of, render
from modelplan.outputs.report import Report, Section
from modelplan.outputs.reports import plan_report as text
from modelplan.outputs.reports.arena_report import alternatives_section, headline, lower_alternatives, parts_section
from modelplan.outputs.reports.explanation_report import best_lines
from modelplan.planning import pipeline
from modelplan.planning.aliasing.explaining import reasons, tensors_called
from modelplan.planning.pipeline import Options
from modelplan.planning.session_blocks import session_peak
from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.copied_processes import Task, beside
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human
from modelplan.questions.alternatives import (
    ModelFile,
    Target,
    as_it_stands,
    carried_offsets,
    load_file,
    lower_alternatives_of,
    order_options,
)
from modelplan.questions.explaining.quick import has_quick_changes, quick_changes, with_alternatives
from modelplan.runtimes.ort.shapes import unknown_tensors

if TYPE_CHECKING:
    from modelplan.answers.page_views import Page
    from modelplan.targets.choosing import Chosen

#: Of files with more operators than these a second process tries the changes: a copy costs some milliseconds.
_MANY = 2000

#: Shows the next part of a report.
Show = Callable[[Report], None]

#: Ends the name of a file for what TFLM logs of its own plan for the model file as it stands.
_LOG = ".log.ascii"


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("models", metavar="MODEL", nargs="+", help="a .tflite or .onnx file")
    model_options.add_planning(parser)
    model_options.add_allocator(parser, "the plan that the file carries for TFLM, which is also the default there")
    model_options.add_abi(parser, default=None)
    model_options.add_capacity(parser)
    model_options.add_target(parser)
    add_draw(
        parser,
        "Plan",
        "; x.ascii in the form of TFLM's log, x.log.ascii the log itself for the file as it stands; x.pftrace for"
        " Perfetto",
    )
    parser.add_argument(
        "--why-not",
        metavar="TENSOR",
        action="append",
        default=[],
        help="why a tensor shares no memory; may be repeated",
    )
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="the whole plan; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help="buffers with offsets, MiniMalloc's columns; - likewise")
    overlays.add_overlay(outputs, "live, share of the peak, scratch, kept in the tail")
    outputs.add_argument(
        "--out",
        nargs="?",
        const="reports",
        metavar="DIR",
        help="every output into DIR/MODEL/ (default: reports)",
    )


def run(arguments: Namespace) -> int:
    """Runs the command."""
    models, named = arguments.models, [arguments.json, arguments.csv, *arguments.draw]
    if len(models) > 1 and any((*named, arguments.overlay, *arguments.why_not)):
        raise RequestError(f"{len(models)} models, but --json, --csv, --draw, --overlay and --why-not are for one")
    if arguments.out and len({folder_name(model) for model in models}) < len(models):
        raise RequestError("two of the models have the same name, so --out would write one over the other")
    files.check_outputs(named, models)
    overlays.check_overlay(arguments.overlay, models)
    chosen = model_options.chosen_target(arguments)
    if chosen and "-" not in (arguments.json, arguments.csv):
        terminal.show([Section("", tuple(model_options.target_lines(chosen)))])
    return terminal.each(models, partial(analyze, model_options.with_capacity(arguments, chosen), chosen=chosen))


def analyze(arguments: Namespace, path: str, chosen: Chosen | None = None) -> int:
    """Shows one model and writes what was asked for."""
    writes = (arguments.out, arguments.json, arguments.csv, arguments.overlay, *arguments.draw)
    with terminal.shown_in_parts(wait=any(writes)) as show:
        if arguments.out:
            write_folder(arguments, path, chosen, show)
        else:
            show_model(arguments, path, chosen, show)
    return 0


def write_folder(arguments: Namespace, path: str, chosen: Chosen | None, show: Show) -> None:
    """Shows one model and writes every output into its folder."""
    ends: list[Task] = []
    with drawing_process(next(getattr(arguments, "drawing", iter(())), None)) as begin:
        folder = Path(arguments.out) / folder_name(path)

        def draw(plan: Plan) -> None:
            files.make_folder(folder)
            ends.append(begin(pictures_of(plan, folder)))

        write_texts(show_model(arguments, path, chosen, show, draw), folder)
        for end in ends:
            end()


def show_model(
    arguments: Namespace, path: str, chosen: Chosen | None, show: Show, made: Callable[[Plan], None] = lambda _: None
) -> Plan:
    """Shows one model and writes all but --out; `made` is called with the plan as soon as there is one."""
    drawn = figures_asked(arguments, "Plan", more=(_LOG, ".ascii", ".pftrace"))
    file = load_file(path, arguments.dim, arguments.shape)
    arguments = model_options.on_target(arguments, chosen, file.graph)
    target = model_options.target_of(arguments, file.graph)
    if any(suffix == _LOG for _, suffix in drawn):
        require_log(file, target)
    needed = as_it_stands(file, target)
    options = options_for(arguments, file, target)
    for name in arguments.why_not:
        tensors_called(file.graph, name)  # a wrong name is told before anything is shown
    if "-" in (arguments.json, arguments.csv):
        stands = stands_of(file, target, needed)
        plan = plan_of(options, file, needed, stands, chosen)
        made(plan)
    else:
        capacity = None if arguments.capacity is None else parse_bytes(arguments.capacity)
        show(need_sections(file, needed, capacity))
        stands = stands_of(file, target, needed)
        show(peak_sections(needed, stands))
        with changes_of(file, target, needed, stands) as changes:
            plan = plan_of(options, file, needed, stands, chosen)
            asked = [Section(f"Why {name} shares or not", reasons(plan, name)) for name in arguments.why_not]
            made(plan)
            others = other_files(file, target, needed, options, plan)
            show([alternatives_section(needed, others)] if others else [])
            show([*text.plan_sections(plan, stands), *session_sections(path, file.graph, target.runtime), *asked])
            show(best_section(file, needed, changes, others))
    for output, suffix in ((arguments.json, ".json"), (arguments.csv, ".csv"), *drawn):
        if output and suffix == PAGE:
            words = Namespace(**vars(arguments) | {"model": path})
            files.write(output, render(page_of(words, file, plan, stands), PAGE))
        elif output:
            files.write(output, planner_log(file, target, needed) if suffix == _LOG else render(plan, suffix))
    if arguments.overlay:
        overlays.write_overlay(arguments.overlay, overlay_of(file, target, needed, plan))
    return plan


def other_files(
    file: ModelFile, target: Target, needed: Requirement, options: Options, plan: Plan
) -> Sequence[Alternative]:
    """What other forms of a file that runs would need; `plan` was made with `options`."""
    if needed.refusals or target.runtime.sorts:  # a runtime that orders by itself has no other forms
        return []
    usual = order_options(file, target)
    asked = replace(options, runtime=usual.runtime, kernels=usual.kernels, capacity=None)
    order = plan.schedule.order if asked == usual else None
    return list(lower_alternatives_of(file, target, needed, order))


def page_of(words: Namespace, file: ModelFile, plan: Plan, stands: Plan) -> Page:
    """The page of the plan, beside others that are made for it; `words` hold the options and the path as `model`."""
    from modelplan.questions.pages.plan_views import model_page

    return model_page(model_options.options_of(words, file.graph), file.graph, plan, stands)


def options_for(arguments: Namespace, file: ModelFile, target: Target) -> Options:
    """How the activations are planned: as asked for, else by the plan that the file carries for its runtime.

    Raises:
        RequestError: an option that cannot be read or that the plan in the file does not allow.
    """
    asked = (
        arguments.allocator,
        arguments.schedule,
        arguments.alias,
        arguments.streams,
        arguments.overlaps,
        arguments.contiguous,
    )
    words = Namespace(**vars(arguments) | {"model": file.path})
    if not any(asked) and carried_offsets(file, target.runtime):
        words.allocator = model_options.FROM_FILE
    options = model_options.options_of(words, file.graph)
    pipeline.require_names(options, target.runtime)
    return options


def stands_of(file: ModelFile, target: Target, needed: Requirement) -> Plan:
    """The plan by which the runtime runs the file as it stands, with what the file needs."""
    plan = pipeline.runtime_plan(file.graph, target.runtime, carried_offsets(file, target.runtime))
    return replace(plan, requirement=needed)


def plan_of(options: Options, file: ModelFile, needed: Requirement, stands: Plan, chosen: Chosen | None = None) -> Plan:
    """The plan that was asked for, with what the file needs as it stands."""
    plan = pipeline.plan(file.graph, options)
    height = needed.head if needed.macro else bounds.height(stands.problem, stands.placement)
    return replace(plan, runtime_height=height, requirement=needed, banks=chosen.banks if chosen else ())


def need_sections(file: ModelFile, needed: Requirement, capacity: int | None) -> Sequence[Section]:
    """What the file needs as it stands and the parts of that, or why its runtime would not run it."""
    first = headline(file.path, needed, capacity)
    return [first] if needed.refusals else [first, parts_section(needed)]


def peak_sections(needed: Requirement, stands: Plan) -> Sequence[Section]:
    """The step at which the file as it stands has most alive; nothing for one that does not run."""
    return [] if needed.refusals else [text.peak_section(stands), *_of_parts(needed, stands)]


def _of_parts(needed: Requirement, stands: Plan) -> Sequence[Section]:
    """A remark where the runtime follows a plan of which the tables of tensors can say nothing."""
    if not needed.macro or needed.head >= bounds.height(stands.problem, stands.placement):
        return []
    note = (
        f"The plan in the file needs {needed.head:,} bytes: it keeps parts of tensors. The peak above and the planned",
        "activations below are those of whole tensors.",
    )
    return [Section("", note)]


def session_sections(path: str, graph: Graph, runtime: Runtime) -> Sequence[Section]:
    """What a session allocates while it runs, for a runtime that orders and places by itself."""
    if not runtime.sorts or graph.format != "onnx" or not graph.ops or any(op.subgraphs for op in graph.ops):
        return []
    found = session_peak(graph, runtime, unknown=unknown_tensors(path, graph))
    lines = [
        f"{human(found.bytes)} at most, at {graph.label(found.op)}, outputs among it, inputs and weights not",
        "at optimization levels off and basic, arena and memory patterns off, one thread, in the session's own order",
    ]
    if found.workspace:
        lines.append(f"{human(found.workspace)} of it are the kernel's own workspace")
    return [Section("What a session allocates while it runs", tuple(lines))]


@contextmanager
def changes_of(
    file: ModelFile, target: Target, needed: Requirement, stands: Plan
) -> Iterator[Callable[[], Sequence[Suggestion]]]:
    """Gives the quick changes of a file that runs; of a large one a second process tries them while the block runs."""
    tried = partial(quick_changes, file, target, needed, stands)
    many = len(file.graph.ops) > _MANY and has_quick_changes(file, target)
    with beside(tried) if many and not needed.refusals else nullcontext(tried) as found:
        yield found


def best_section(
    file: ModelFile, needed: Requirement, changes: Callable[[], Sequence[Suggestion]], others: Sequence[Alternative]
) -> Sequence[Section]:
    """The three changes that would lower it most, of those that take no time to try."""
    if needed.refusals:
        return []
    lines = best_lines(with_alternatives(changes(), lower_alternatives(needed, others), needed))
    more = f"`modelplan explain {file.path}` tries the rest"
    return [Section(f"What would help most; {more}", tuple(lines or ["nothing that takes no time to try"]))]


def require_log(file: ModelFile, target: Target) -> None:
    """Checks that the file is one that TFLM plans.

    Raises:
        RequestError: it is not.
    """
    runtime = target.runtime
    if not runtime.offline_plans or file.graph.format != runtime.default_for:
        raise RequestError(f"{_LOG} is what TFLM logs of a .tflite file; {file.path} is planned for {runtime.name}")


def planner_log(file: ModelFile, target: Target, needed: Requirement) -> str:
    """What TFLM built with TF_LITE_SHOW_MEMORY_USE logs of its plan for the file as it stands.

    Raises:
        RequestError: TFLM refuses the file, and so logs no plan.
    """
    from modelplan.outputs.exchange import ascii_map
    from modelplan.runtimes.tflm.arena import planned
    from modelplan.runtimes.tflm.file import read_tflite

    if needed.refusals:
        raise RequestError(f"{_LOG}: TFLM makes no plan of {file.path}: {needed.refusals[0]}")
    return ascii_map.planner_log(*planned(read_tflite(file.content, file.path), target.abi, target.runtime.kernels))


def overlay_of(file: ModelFile, target: Target, needed: Requirement, plan: Plan) -> Mapping[str, str]:
    """The figures of the plan's operators for Model Explorer; what the runtime keeps for each where it is known."""
    from modelplan.formats.node_keys import node_keys
    from modelplan.outputs.exchange import node_data

    runtime = target.runtime
    known = runtime.keeps is not None and file.graph.format == runtime.default_for and not needed.refusals
    kept = runtime.keeps(file.content, file.path, target.abi, runtime.kernels) if known and runtime.keeps else ()
    return node_data.figures_of(plan, node_keys(file.content, file.graph), kept)


def folder_name(path: str) -> str:
    """The name of the folder for a model's outputs: the file's without its suffix, which never leads elsewhere."""
    name = Path(path).name
    return Path(path).stem if Path(path).stem.strip(".") else f"model {name}"


def write_texts(plan: Plan, folder: Path) -> None:
    """Every other output of the table into `folder`, as plan.json and so on."""
    for suffix, row in outputs_of("Plan").items():
        if not row.figure:
            files.write(str(folder / f"plan{suffix}"), render(plan, suffix))
