"""The plan by which a runtime runs the unmodified file, and the one that a request asks for in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan.model import Plan, Requirement, bounds
from modelplan.model.model_file import ModelFile, Target
from modelplan.planning import pipeline
from modelplan.planning.pipeline import Options
from modelplan.questions.alternatives import carried_offsets
from modelplan.questions.model_request import ModelRequest, planning_options
from modelplan.questions.option_files import FROM_FILE

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen
    from modelplan.targets.device import Bank


def usual_options(request: ModelRequest, file: ModelFile, target: Target) -> Options:
    """The options that a request asks for; where it asks for no plan, those of the plan that the file carries.

    Raises:
        RequestError: an option that cannot be read or that the plan in the file does not allow.
    """
    if not request.asks_for_plan and carried_offsets(file, target.runtime):
        request = replace(request, allocator=FROM_FILE)
    options = planning_options(request, file.graph)
    pipeline.require_names(options, target.runtime)
    return options


def unmodified_plan(file: ModelFile, target: Target, requirement: Requirement, chosen: Chosen | None = None) -> Plan:
    """The plan by which the runtime runs the unmodified file, with what the file needs, on `chosen` where given."""
    if chosen:
        requirement = replace(requirement, basis=f"{chosen.device.name}: {requirement.basis}")
    plan = pipeline.runtime_plan(file.graph, target.runtime, carried_offsets(file, target.runtime))
    return replace(plan, requirement=requirement)


def requested_plan(file: ModelFile, options: Options, unmodified: Plan, banks: Sequence[Bank] = ()) -> Plan:
    """The plan made with `options`, with what the unmodified file needs by its plan `unmodified`."""
    plan, requirement = pipeline.plan(file.graph, options), unmodified.requirement
    if requirement is not None and requirement.macro:
        height = requirement.head
    else:
        height = bounds.height(unmodified.problem, unmodified.placement)
    return replace(plan, runtime_height=height, requirement=requirement, banks=tuple(banks))
