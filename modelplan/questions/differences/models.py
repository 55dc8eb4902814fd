"""`diff`: the difference of two model files, of one file in two settings, or of two plans, in one call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from modelplan.answers.model_difference import Difference
from modelplan.model import Plan
from modelplan.model.model_file import USUAL_ABI
from modelplan.planning import pipeline
from modelplan.primitives.errors import RequestError
from modelplan.questions.alternatives import open_on_target, planned_by_itself
from modelplan.questions.differences.comparing import difference
from modelplan.questions.differences.sides import Side, planned_side, side_of
from modelplan.questions.model_request import ModelRequest, planning_options
from modelplan.questions.session_needs import begin_measuring, session_asked

#: One choice for both sides, or a pair for the old and the new one.
Each = str | tuple[str | None, str | None] | None
#: What is said where the sides are of two kinds.
_MIXED = "a file and a plan: what a whole file needs does not compare with planned activations"
#: What a request states to ask for a plan other than the one by which the runtime runs the unmodified file.
_PLANS = ("schedule", "alias", "allocator", "streams", "overlaps")
#: Fields of a request that are named among the settings where they differ, by how they are called there.
_NAMED = {"extents": "dims", "shapes": "shapes", "alignment": "alignment", "padding": "pad", "threads": "threads"}


def diff(
    old: str | Path | Plan | ModelRequest,
    new: str | Path | Plan | ModelRequest | None = None,
    *,
    runtime: Each = None,
    kernels: Each = None,
    abi: Each = USUAL_ABI,
) -> Difference:
    """What two models differ in: memory by part, the peak, operators and inputs in order of effect.

    Operators are matched by structure; names play no part.

    Args:
        old: a model file, sized on its runtime; a request, for all that a file is planned with; or a plan, whose
            activations alone count.
        new: likewise; None is the same as `old`, which needs another choice for one of the sides.
        runtime: of files without a request, as in `modelplan.plan`; a pair is for the old and the new side.
        kernels: the kernel library that the runtime is built with; None: that of the plan in the file, else all.
            A pair is for the old and the new side.
        abi: of the target, as in `modelplan check`; likewise.

    Raises:
        RequestError: models of two formats, or a choice that there is not.
        ModelError: a file cannot be read.
    """
    new = old if new is None else new
    if isinstance(old, ModelRequest) and isinstance(new, ModelRequest):
        return difference(*compared_sides(old, new))
    if isinstance(old, ModelRequest | Plan) or isinstance(new, ModelRequest | Plan):
        if isinstance(old, Plan) and isinstance(new, Plan):
            return difference(planned_side(old), planned_side(new))
        raise RequestError(_MIXED)
    choices = [each if isinstance(each, tuple) else (each, each) for each in (runtime, kernels, abi)]
    first, second = (_side(model, *(pair[n] for pair in choices)) for n, model in enumerate((old, new)))
    return difference(*_of_one_kind(first, second))


def _side(path: str | Path, runtime: str | None, kernels: str | None, abi: str | None) -> Side:
    request, file, target = open_on_target(ModelRequest(str(path), runtime=runtime, kernels=kernels))
    return side_of(file, replace(target, abi=abi or USUAL_ABI), session=session_asked(request))


def compared_sides(old: ModelRequest, new: ModelRequest) -> tuple[Side, Side]:
    """The two sides of a comparison; where one of both asks for a plan, only planned activations count for both.

    Raises:
        RequestError: a choice that there is not; names the side.
        ModelError: a file cannot be read.
    """
    planned = _asks_for_plan(old) or _asks_for_plan(new)
    with named_side("old"):
        first = _requested_side(old, planned=planned)
    with named_side("new"):
        second = _requested_side(new, planned=planned)
    return _of_one_kind(first, second)


def _of_one_kind(old: Side, new: Side) -> tuple[Side, Side]:
    """Both sides; where there is a figure of a session for one alone, both with what the planner needs by itself.

    A side that its session refuses stays refused.
    """
    if old.needed.refusals or new.needed.refusals or (old.needed.session is None) == (new.needed.session is None):
        return old, new
    return _without_session(old), _without_session(new)


def _without_session(side: Side) -> Side:
    needed = planned_by_itself(side.graph, side.plan.runtime)
    return replace(side, needed=needed, whole=False, plan=replace(side.plan, requirement=needed))


@contextmanager
def named_side(name: str) -> Iterator[None]:
    """Puts the name of a side in front of what is wrong with its choices."""
    try:
        yield
    except RequestError as problem:
        raise RequestError(f"{name}: {problem}") from None


def _asks_for_plan(request: ModelRequest) -> bool:
    return any(getattr(request, name) is not None for name in _PLANS)


def _requested_side(request: ModelRequest, *, planned: bool) -> Side:
    """One side; `planned`: of either side only the planned activations count."""
    session = None if planned else session_asked(request)
    if session:
        begin_measuring(request)
    request, file, target = open_on_target(request)
    asked = _asks_for_plan(request)
    plan = pipeline.plan(file.graph, planning_options(request, file.graph)) if asked else None
    side = side_of(file, target, plan=plan, session=session, settings=_settings(request), capacity=request.available)
    return side if asked or not planned else _activations(side)


def _activations(side: Side) -> Side:
    """The side with the planned part as all that it needs."""
    basis = f"the planned activations for {side.plan.runtime.name}"
    choices = tuple(row for row in side.settings if row[0] != "ABI")
    plan = replace(side.plan, requirement=None)
    return replace(side, plan=plan, whole=False, kept=(), needed=replace(side.needed, basis=basis), settings=choices)


def _settings(request: ModelRequest) -> list[tuple[str, str]]:
    """The choices that are named where they differ."""
    target = request.target
    regions = target.block.regions if target and target.block else ()
    device = [("target", ", ".join((target.device.name, *regions)))] if target else []
    given = {name: getattr(request, field) for name, field in _NAMED.items()}
    words = {name: ", ".join(v) if isinstance(v, tuple) else str(v) for name, v in given.items() if v}
    return [*device, *words.items()]
