"""The plans that the page of a model switches between: each is made here, since outputs plan nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan import allocators, pipeline
from modelplan.cli import model_options
from modelplan.outputs.page import views
from modelplan.outputs.page.views import Page, View
from modelplan.types import Graph, Plan

if TYPE_CHECKING:
    from modelplan.pipeline import Options

#: Above so many operators only the file's order is planned beside what was asked for: each plan would take seconds.
_MOST_OPS = 4000
#: The modes of sharing that are shown, with what each allows.
_MODES = {
    "none": "no two tensors share memory",
    "views": "an operator that leaves bytes as they are shares them",
    "safe": "outputs also take the bytes of operands that are read for the last time",
}


def model_page(arguments: Namespace, graph: Graph, plan: Plan, stands: Plan, tail: int = 0) -> Page:
    """The page of a model: the plan that was asked for, the runtime's own, other orders and other sharing.

    `arguments` hold the options of the command and the path as `model`; `stands` is the plan by which the runtime runs
    the file as it stands, and `tail` what the runtime needs besides what is planned, in bytes.
    """
    made = [
        views.view_of(plan, "this plan", _about(plan)),
        views.view_of(
            stands, f"{plan.runtime.name} by itself", f"what the runtime does with the file: {_about(stands)}"
        ),
        *_others(arguments, graph, plan),
    ]
    made = [replace(view, tail=tail) for view in made]
    return Page(graph.name, views.subtitle(plan), views.distinct(made), plan.made_by)


def _others(arguments: Namespace, graph: Graph, plan: Plan) -> Iterator[View]:
    """The file's order, and the modes of sharing; with streams only those that are safe with them."""
    options = model_options.options_of(arguments, graph)
    if options.offsets:
        options = replace(options, offsets=(), allocator=allocators.DEFAULT, schedule="best")
    in_file = _planned(graph, plan, replace(options, schedule="file"))
    yield views.view_of(in_file, "file order", f"the operators as the file has them: {_about(in_file)}")
    if len(graph.ops) > _MOST_OPS:
        return
    for mode, words in _MODES.items():
        if mode == "safe" and (options.streams is not None):
            continue
        made = _planned(graph, plan, replace(options, alias=mode))
        yield views.view_of(made, f"aliases {mode}", f"{words}: {_about(made)}")


def _planned(graph: Graph, plan: Plan, options: Options) -> Plan:
    runtime = pipeline.configured_runtime(graph, options)
    return replace(pipeline.plan_on(graph, runtime, options), banks=plan.banks, made_by=plan.made_by)


def _about(plan: Plan) -> str:
    """How a plan was made, in a few words."""
    order = "the order of the file" if list(plan.schedule.order) == sorted(plan.schedule.order) else "another order"
    return f"{order}, aliases {plan.alias}, placed by {plan.allocator}"
