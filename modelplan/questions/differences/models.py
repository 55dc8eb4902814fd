"""`diff`: what two model files, one in two settings, or two plans differ in, and what made one need more or less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from modelplan.answers.model_difference import Change, Difference
from modelplan.model import Plan
from modelplan.model.model_file import USUAL_ABI, ModelFile, Target
from modelplan.planning import pipeline
from modelplan.primitives.errors import ModelPlanError, RequestError
from modelplan.questions.alternatives import open_on_target, planned_by_itself
from modelplan.questions.differences.side_difference import difference
from modelplan.questions.differences.sides import Side, planned_side, side_of
from modelplan.questions.model_request import ModelRequest, SessionAsked, planning_options
from modelplan.questions.session_needs import begin_measuring, session_asked

#: One choice for both sides, or a pair for the old and the new one.
Each = str | tuple[str | None, str | None] | None
#: What is said where the sides are of two kinds.
_MIXED = "a file and a plan: what a whole file needs does not compare with planned activations"
#: What a request states to ask for a plan other than the one by which the runtime runs the unmodified file.
_PLANS = ("schedule", "alias", "allocator", "streams", "overlaps")
#: Fields of a request that are named among the settings where they differ, by how they are called there.
_NAMED = {"extents": "dims", "shapes": "shapes", "alignment": "alignment", "padding": "pad", "threads": "threads"}

#: How many operators are named; the others are counted.
_MOST_CAUSES = 8


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


def causes(old: ModelFile, new: ModelFile, target: Target, asked: SessionAsked) -> tuple[str, ...]:
    """One line for each operator or input that changed what the model needs, largest effect first.

    Then follow what each is sized for, where another kernel library needs most, the parts of the memory that differ and
    the two peaks; where the files cannot be compared, the reason. `asked` is how sessions are sized.
    """
    try:
        comparison = difference(side_of(old, target, session=asked), side_of(new, target, session=asked))
    except ModelPlanError as problem:
        return (f"operators not compared: {problem}",)
    return tuple(_cause_lines(comparison))


def _cause_lines(comparison: Difference) -> Iterator[str]:
    own = [change for change in comparison.changes if change.change not in (Change.VALUES, Change.FOLLOWS)]
    for change in own[:_MOST_CAUSES]:
        yield change.line + (f"; {change.effect:+,} bytes at the peak and kept for it" if change.effect else "")
    if len(own) > _MOST_CAUSES:
        yield f"[{len(own) - _MOST_CAUSES:,} others, which `modelplan diff` lists]"
    follow, values = len(comparison.of(Change.FOLLOWS)), len(comparison.of(Change.VALUES))
    if follow:
        yield f"operators that differ since what they read does: {follow:,}"
    if values and not own:
        yield f"operators that differ in values only: {values:,}"
    if comparison.moved:
        yield f"operators elsewhere in the order: {comparison.moved:,}"
    if comparison.basis[0] != comparison.basis[1]:
        yield f"sized for {comparison.basis[0]} -> {comparison.basis[1]}"
    if parts := [f"{part.name} {part.bytes.delta:+,}" for part in comparison.parts if part.bytes.delta]:
        yield f"bytes by part: {', '.join(parts)}"
    before, after = comparison.peaks
    if (before.operator, before.nbytes) != (after.operator, after.nbytes):
        yield f"peak: {before.nbytes:,} bytes at {before.operator} -> {after.nbytes:,} bytes at {after.operator}"
