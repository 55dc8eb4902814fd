"""The plans that the page of a model switches between: each is made here, since outputs plan nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from modelplan import runtimes
from modelplan.answers import drawing
from modelplan.answers import page_views as views
from modelplan.answers.drawing import Drawing
from modelplan.answers.page_views import Page, View
from modelplan.answers.placement_answers import OURS
from modelplan.model import Graph, Placement, Plan, Problem, bounds
from modelplan.model.model_file import Target
from modelplan.planning import allocators, pipeline
from modelplan.primitives.units import human, stand_in
from modelplan.primitives.version import __version__
from modelplan.questions.alternatives import carried_offsets, load_file, with_proved_plan
from modelplan.questions.option_files import FROM_FILE
from modelplan.questions.pages import carried_views
from modelplan.rewriting.striped_tflite.rungs import RUNGS, Goal, Rung
from modelplan.runtimes.tflm import TFLM

if TYPE_CHECKING:
    from modelplan.answers.explanation import Explanation
    from modelplan.answers.placement_answers import Field
    from modelplan.answers.shared_plan import SharedPlan
    from modelplan.planning.pipeline import Options
    from modelplan.questions.differences.sides import Side
    from modelplan.rewriting.striped_tflite.ladder import Ladder

#: Above so many operators only the file's order is planned beside what was asked for: each plan would take seconds.
_MOST_OPS = 4000
_MOST_SUGGESTIONS = 12
#: How many rectangles the answers of a comparison may have in all, so that the file stays below some ten megabytes.
_MOST_RECTANGLES = 200_000
#: The modes of sharing that are shown: what the page calls each, and what it allows.
_MODES = {
    "none": ("no sharing", "each tensor has bytes of its own"),
    "views": ("views share", "an operator that leaves bytes as they are, such as a reshape, shares them"),
    "safe": ("outputs over inputs", "an output may also take the bytes of an input that is read for the last time"),
}


def model_page(options: Options, graph: Graph, plan: Plan, unmodified: Plan) -> Page:
    """The page of a model: the plan that was asked for, the runtime's own, other orders and other sharing.

    `options` are those of the plan; `unmodified` is the plan by which the runtime runs the unmodified file.
    """
    own = views.view_of(plan, "this plan", _about(plan))
    page_views = views.distinct([own, _file_view(unmodified), *_others(options, graph, plan)])
    return Page(graph.name, views.subtitle(plan), page_views, plan.made_by)


def _file_view(unmodified: Plan) -> View:
    """How the runtime runs the unmodified file, by the plan in the file where that keeps parts of tensors."""
    needed, capacity, runtime = unmodified.requirement, unmodified.problem.capacity, unmodified.runtime
    if needed and runtime.offline_plans and unmodified.graph.source:
        file = load_file(unmodified.graph.source)
        if carried_views.needs_own_view(file, runtime):
            return carried_views.carried_view(file, needed, runtime, capacity, "plan in the file")
    about = f"what the runtime does with the file: {_about(unmodified)}"
    return views.view_of(unmodified, f"{runtime.name} by itself", about)


def explained_page(options: Options, explanation: Explanation) -> Page:
    """The page of a model with what would lower its need among the figures of each plan."""
    page = model_page(options, explanation.file.graph, explanation.plan, explanation.unmodified)
    shown = explanation.advice.suggestions[:_MOST_SUGGESTIONS]
    facts = tuple((f"{human(suggestion.saved)} less", suggestion.name) for suggestion in shown)
    return replace(page, views=tuple(replace(view, facts=(*view.facts, *facts)) for view in page.views))


def _others(options: Options, graph: Graph, plan: Plan) -> Iterator[View]:
    """The file's order, and the modes of sharing; with streams only those that are safe with them."""
    if options.offsets:
        options = replace(options, offsets=(), allocator=allocators.DEFAULT, schedule="best")
    in_file = _planned(graph, plan, replace(options, schedule="file"))
    yield views.view_of(in_file, "file order", _about(in_file))
    if len(graph.ops) > _MOST_OPS:
        return
    for mode, (name, words) in _MODES.items():
        if mode == "safe" and (options.streams is not None):
            continue
        mode_plan = _planned(graph, plan, replace(options, alias=mode))
        yield views.view_of(mode_plan, name, f"{words} (--alias {mode}): {_about(mode_plan)}")


def _planned(graph: Graph, plan: Plan, options: Options) -> Plan:
    runtime = pipeline.configured_runtime(graph, options)
    answer = pipeline.plan_on(graph, runtime, options)
    return replace(answer, banks=plan.banks, made_by=plan.made_by, requirement=plan.requirement)


def _about(plan: Plan) -> str:
    """How a plan was made, in a few words."""
    in_file = list(plan.schedule.order) == sorted(plan.schedule.order)
    order = "in the order of the file" if in_file else "in another order than the file has"
    return f"operators {order}; {views.SHARING[plan.alias]}; placed by the allocator {plan.allocator}"


def difference_page(old: Side, new: Side) -> Page:
    """The page of two sides that are compared: rectangles of tensors of one name move from one side to the other."""
    page_views = tuple(_side_view(name, side) for name, side in (("old", old), ("new", new)))
    title = old.graph.name if old.graph.name == new.graph.name else f"{old.graph.name} → {new.graph.name}"
    return Page(title, views.subtitle(new.plan), page_views, new.plan.made_by, change=True)


def _side_view(name: str, side: Side) -> View:
    plan = replace(side.plan, problem=replace(side.plan.problem, capacity=side.capacity))
    view = views.view_of(plan, name, f"{side.name}: {_about(plan)}")
    if view.drawing.planned == side.needed.head or not (
        side.whole and plan.runtime.offline_plans and plan.graph.source
    ):
        return view
    file = load_file(plan.graph.source)
    if not carried_views.needs_own_view(file, plan.runtime):
        return view
    view = carried_views.carried_view(file, side.needed, plan.runtime, side.capacity, name)
    return replace(view, about=f"{side.name}. {view.about}")


def ladder_page(name: str, ladder: Ladder, goal: Goal) -> Page:
    """The page of a model that was made to fit: before, and each rung of the ladder, the chosen one last."""
    rungs = [rung for rung in ladder.rungs if rung is not ladder.chosen]
    rungs += [ladder.chosen] if ladder.chosen else []
    page_views = [
        _rung_view(name, rung, goal, ladder.kernels, chosen=rung is ladder.chosen)
        for rung in rungs
        if not rung.refusals
    ]
    first = page_views[0].graph
    subtitle = f"tflite, {len(first.ops):,} operators before; runtime tflm" if first else ""
    return Page(
        Path(name).stem, subtitle, tuple(page_views), f"modelplan {__version__}", change=ladder.chosen is not None
    )


def _rung_view(name: str, rung: Rung, goal: Goal, kernels: str, *, chosen: bool) -> View:
    """The plan by which TFLM runs the file of a rung."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(rung.model)
        file = load_file(str(path))
    runtime = runtimes.with_kernels(TFLM, kernels)
    requirement = with_proved_plan(file, Target(runtime, goal.abi))
    called = "before" if rung.name == "as is" else f"after: {rung.name}" if chosen else rung.name
    about = RUNGS[rung.name]
    if about.startswith("and "):  # the ladder's words go on from the rung below
        about = f"{RUNGS['views']} {about}"
    if carried_views.needs_own_view(file, runtime):
        view = carried_views.carried_view(file, requirement, runtime, goal.budget, called)
        summary = "; ".join((about, *_matched(rung.stretches, view)))
        view = replace(view, about=f"{summary}. {view.about}")
    else:
        about = "; ".join((about, *rung.stretches))
        plan = pipeline.runtime_plan(file.graph, runtime, carried_offsets(file, runtime))
        problem = replace(plan.problem, capacity=goal.budget)
        view = views.view_of(replace(plan, problem=problem, requirement=requirement), called, about)
    facts = [
        ("arena", human(rung.arena)),
        ("planned by TFLM (head)", human(rung.head)),
        ("kept by TFLM (tail)", human(rung.arena - rung.head)),
        ("file", human(len(rung.model))),
        ("operators", f"{rung.ops:,}"),
        ("multiply-accumulates", f"{rung.macs:,}"),
    ]
    return replace(view, facts=(*facts, *view.facts))


def _matched(stretches: Sequence[str], view: View) -> Iterator[str]:
    """The rung's stretches with the operator numbers of the original model; each loop has its WHILE."""
    loops = [label for label in view.op_labels if label.endswith(" WHILE") and " in the " not in label]
    named = iter(loops if len(loops) == sum(": one loop over " in stretch for stretch in stretches) else ())
    for stretch in stretches:
        ops, colon, how = stretch.partition(":")
        words = f"{ops.replace('ops ', 'operators ', 1)} of the model as it was{colon}{how}"
        loop = next(named, "") if ": one loop over " in stretch else ""
        yield f"{words} ({loop} here)" if loop else words


def answers_page(
    title: str, problem: Problem, plan: Plan | None, placements: Mapping[str, Placement], field: Field
) -> Page:
    """The page of all answers to one problem, lowest first; ours is the first view, then the plan that the file states.

    `problem` has the capacity that is drawn. Answers beyond some 200,000 rectangles in all are left to the table.
    """
    ranked = [mark.name for mark in field.marks]
    names = list(dict.fromkeys([*(name for name in (*OURS, FROM_FILE) if name in placements), *ranked]))
    names = names[: max(1, _MOST_RECTANGLES // max(len(problem), 1))]
    page_views = [_answer_view(title, problem, plan, placements[name], name) for name in names]
    about = views.subtitle(plan) if plan else f"{len(problem):,} buffers"
    return Page(title, about, tuple(page_views), f"modelplan {__version__}", field)


def _answer_view(title: str, problem: Problem, plan: Plan | None, placement: Placement, name: str) -> View:
    note = stand_in(placement.found_by, placement.own_height) or f"placed by {name}"
    if plan is None:
        return View(name, note, drawing.of_problem(title, problem, placement))
    return views.view_of(replace(plan, problem=problem, placement=placement, allocator=name), name, note)


def shared_page(shared_plan: SharedPlan) -> Page:
    """Several models in one memory, and each in a memory of its own, stacked upon each other on one time axis."""
    facts = (("in memories of their own", human(shared_plan.separate)), ("allocator", shared_plan.allocator))
    joint = View("one memory", "all models in one memory", drawing.of_shared(shared_plan), facts=facts)
    title = " + ".join(part.name for part in shared_plan.parts)
    about = f"{len(shared_plan.parts)} models, {len(shared_plan.problem):,} buffers"
    return Page(title, about, (joint, _stacked(shared_plan, joint.drawing)), shared_plan.made_by)


def _stacked(shared_plan: SharedPlan, joint: Drawing) -> View:
    """Each model in a memory of its own: the memories lie upon each other, none shares bytes with another."""
    buffers, offsets, kinds, banks, base = [], [], [], [], 0
    for number, part in enumerate(shared_plan.parts):
        placed = part.plan.placement if part.plan else allocators.place(part.problem, shared_plan.allocator)
        start = shared_plan.starts[number]
        rows = [replace(b, start=b.start + start, end=b.end + start, pin=None) for b in part.problem]
        buffers += rows
        offsets += [base + int(offset) for offset in placed.offsets]
        kinds += [number] * len(rows)
        banks.append((f"memory of {part.name}", base))
        base += max(part.alone, bounds.height(part.problem, placed))
    drawn = replace(
        joint,
        problem=Problem.of(buffers),
        placement=Placement(np.array(offsets), lower_bound=0),
        planned=base,
        kinds=np.array(kinds, dtype=np.int64),
        banks=tuple(banks),
        claimed=(),
    )
    return View("separate memories", "a memory for each model", drawn)
