"""`diff`: the difference of two model files, of one file in two settings, or of two plans, in one call."""

from __future__ import annotations

from pathlib import Path

from modelplan.answers.model_difference import Difference
from modelplan.model import Plan
from modelplan.planning.pipeline import Options, configured_runtime
from modelplan.primitives.errors import RequestError
from modelplan.questions.alternatives import Target, load_file
from modelplan.questions.differences.comparing import difference
from modelplan.questions.differences.sides import Side, planned_side, side_of

#: One choice for both sides, or a pair for the old and the new one.
Each = str | tuple[str | None, str | None] | None


def diff(
    old: str | Path | Plan,
    new: str | Path | Plan | None = None,
    *,
    runtime: Each = None,
    kernels: Each = None,
    abi: Each = "32",
) -> Difference:
    """What two models differ in: memory by part, the peak, operators and inputs in order of effect.

    Operators are matched by structure; names play no part.

    Args:
        old: a model file, sized as it stands on its runtime, or a plan, whose activations alone count.
        new: likewise; None is the same as `old`, which needs another choice for one of the sides.
        runtime: of files, as in `modelplan.plan`; a pair is for the old and the new side.
        kernels: the kernel library that the runtime is built with; likewise.
        abi: of the target, as in `modelplan check`; likewise.

    Raises:
        RequestError: models of two formats, or a choice that there is not.
        ModelError: a file cannot be read.
    """
    if isinstance(old, Plan) != isinstance(old if new is None else new, Plan):
        raise RequestError("a file and a plan: what a whole file needs does not compare with planned activations")
    choices = [_pair(each) for each in (runtime, kernels, abi)]
    sides = [_side(one, *(pair[n] for pair in choices)) for n, one in enumerate((old, old if new is None else new))]
    return difference(*sides)


def _pair(each: Each) -> tuple[str | None, str | None]:
    return each if isinstance(each, tuple) else (each, each)


def _side(one: str | Path | Plan, runtime: str | None, kernels: str | None, abi: str | None) -> Side:
    if isinstance(one, Plan):
        return planned_side(one)
    file = load_file(str(one))
    return side_of(file, Target(configured_runtime(file.graph, Options(runtime, kernels=kernels)), abi or "32"))
