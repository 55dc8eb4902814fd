"""What the page shows, as plain data: several plans of one subject, each with a name, and the words for them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelplan.answers import drawing
from modelplan.answers.drawing import Drawing
from modelplan.answers.placement_answers import Field, Solution, drawing_of
from modelplan.answers.summary import summary
from modelplan.model import Graph, Merge, Plan
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import human

#: Which tensors share bytes in each mode of `--alias`, in words.
SHARING = {
    "none": "no two tensors share bytes",
    "views": "reshapes and other views share bytes",
    "safe": "views share bytes, and outputs may take the bytes of inputs",
    "max": "views, outputs over inputs, joins and splits share bytes",
    "runtime": "tensors share bytes as the runtime does by itself",
}


@dataclass(frozen=True, slots=True)
class Band:
    """A region of several that are stacked: its number, name, where it begins in the stack, bytes used, its size, and
    the bytes of the stack that it takes.
    """

    region: int
    name: str
    base: int
    used: int
    size: int
    height: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """A copy between regions: rectangles by number (-1: a home, which has none), first step and the step by which it is
    done, addresses in the stack, bytes.
    """

    source: int
    target: int
    issued: int
    due: int
    start: int
    end: int
    size: int


@dataclass(frozen=True, eq=False)
class View:
    """One plan of the page.

    `name` is what the switch calls it, `about` says in a sentence what it is; `facts` are labels with values.
    `graph`, `order` and `merges` are empty where the buffers come without a model. `refused`: the
    runtime would not run the model. `twins` name plans that came out the same. `bands`
    are the regions where several are stacked, `arrows` the copies between them. `parts`: buffers keep only parts of
    their tensors, so that bytes alive are counted once however many buffers have them. `op_labels` are what the page
    calls the operators of `graph`, where that is not their number and kind; `op_callers` the operator whose body each
    one stands in, or -1. `given` are the buffers whose addresses the plan in the file gives.
    `model` is, where the page has several models, the name of that of the plan and a line below it.
    """

    name: str
    about: str
    drawing: Drawing
    graph: Graph | None = None
    order: tuple[int, ...] = ()
    merges: tuple[Merge, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    refused: bool = False
    twins: tuple[str, ...] = ()
    bands: tuple[Band, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    parts: bool = False
    op_labels: tuple[str, ...] = ()
    op_callers: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    model: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Page:
    """What one file holds: a title, a line below it, and the views, of which the first is shown at first.

    `field` holds the answers of all allocators where the views are answers to one problem. `change`: the last view is
    what the first became, and the page opens with that and what changed.
    """

    title: str
    subtitle: str
    views: tuple[View, ...]
    made_by: str
    field: Field | None = None
    change: bool = False


def view_of(plan: Plan, name: str, about: str) -> View:
    """The view of one plan."""
    refused = bool(plan.requirement and plan.requirement.refusals)
    drawn = drawing.of_plan(plan)
    return View(name, about, drawn, plan.graph, plan.schedule.order, plan.merges, _facts(plan), refused)


def distinct(views: Sequence[View]) -> tuple[View, ...]:
    """The views without duplicates; the first of equal views says what the others were."""
    kept: list[View] = []
    for view in views:
        for place, other in enumerate(kept):
            if _same(view, other):
                kept[place] = replace(other, twins=(*other.twins, view.name))
                break
        else:
            kept.append(view)
    return tuple(kept)


def _same(view: View, other: View) -> bool:
    """Whether two views show the same buffers at the same addresses in the same order of operators."""
    a, b = view.drawing, other.drawing
    return (
        view.graph == other.graph
        and view.order == other.order
        and len(a.problem) == len(b.problem)
        and np.array_equal(a.placement.offsets, b.placement.offsets)
        and a.problem.names == b.problem.names
        and all(np.array_equal(getattr(a.problem, c), getattr(b.problem, c)) for c in ("size", "start", "end"))
    )


def page_of(plan: Plan) -> Page:
    """The page of one plan alone."""
    return Page(plan.graph.name, subtitle(plan), (view_of(plan, "this plan", ""),), plan.made_by)


def page_of_models(pages: Sequence[Page], paths: Sequence[str]) -> Page:
    """One page of several: a tab for each model, with the plans of its own page.

    `paths` name the models where two have the same title.
    """
    titles = [page.title for page in pages]
    names = titles if len({*titles}) == len(titles) else paths
    named = [(view, (name, page.subtitle)) for name, page in zip(names, pages, strict=True) for view in page.views]
    views = tuple(replace(view, model=model) for view, model in named)
    return Page(f"{len(pages)} models", "", views, pages[0].made_by)


def page_of_solution(solution: Solution) -> Page:
    """The page of a placed problem that came without a model, and of the plan that its file states."""
    views = [View("this plan", "", drawing_of(solution))]
    if solution.planned is not None:
        own = replace(solution, placement=solution.planned)
        views.append(View(solution.planner or "the file", "the offsets that the file states", drawing_of(own)))
    drawn = views[0].drawing
    return Page(drawn.title, f"{len(drawn.problem):,} buffers", tuple(views), drawn.made_by)


def subtitle(plan: Plan) -> str:
    """The runtime and the size of the model in a line."""
    graph, runtime = plan.graph, plan.runtime
    planned = "; planned activations, no session" if plan.requirement and plan.requirement.session else ""
    basis = f"; {plan.requirement.basis}" if plan.requirement and plan.requirement.macro else ""
    return (
        f"{graph.format}, {len(graph.ops):,} operators; runtime {runtime.name}, alignment {runtime.alignment}"
        f"{basis}{planned}"
    )


def _facts(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The figures that the page lists beside the memory map."""
    figures = summary(plan)
    proved = "order and layout" if figures.jointly_optimal else "layout" if figures.optimal else ""
    rows = [
        ("alignment loss at the peak", human(figures.alignment_loss)),
        ("fragmentation", human(figures.fragmentation)),
        ("shared while overlapping", human(figures.overlapped) if figures.overlapped else ""),
        ("proved lowest", proved),
        ("order", f"{plan.schedule.method}{', optimal' if plan.schedule.optimal else ''}"),
        ("sharing", SHARING[plan.alias]),
        ("allocator", plan.allocator),
        ("constants in flash", human(figures.constants)),
        ("state kept between runs", human(figures.state) if figures.state else ""),
    ]
    rows += [("refused by the runtime", why) for why in (plan.requirement.refusals if plan.requirement else ())]
    return tuple((label, value) for label, value in rows if value)
