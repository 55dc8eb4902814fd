"""`recompute`: what it saves to drop values of a model and to compute them again."""

from __future__ import annotations

from dataclasses import replace

from modelplan.answers.recomputation import Curve
from modelplan.planning.recomputing.curves import curve_of
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import answers_paths
from modelplan.questions.alternatives import open_on_target, unmodified_requirement
from modelplan.questions.model_request import ModelRequest, planning_options, with_deciding_kernels
from modelplan.questions.option_files import FROM_FILE


@dataclass(frozen=True, slots=True)
class RecomputeRequest(ModelRequest):
    """Asks what it saves to drop values and compute them again.

    Args:
        most_work: extra work as a share; the lowest point within it is chosen where no budget is given.
        budget: bytes of the plan; the point of least work within them is chosen. None: those of the target's block
            that the runtime does not keep.
        seconds: for all exact searches; 0: none.
    """

    most_work: float = 0.2
    budget: int | None = None
    seconds: float = 30.0


@answers_paths(RecomputeRequest)
def recompute(request: RecomputeRequest) -> Curve:
    """Bytes against multiply-accumulates: the plans of a model in which some operators run more than once.

    Args:
        request: the model, how it is planned, and how much more it may compute.

    Returns:
        The plans that no other one beats in bytes and work, and which of them was chosen.

    Raises:
        ModelError: the file cannot be read.
        RequestError: streams, a finished plan and others that say nothing of repeated operators.
    """
    request, file, target = open_on_target(request)
    if request.allocator == FROM_FILE:
        raise RequestError("the plan in a file says nothing of repeated operators; choose another --allocator")
    needed = unmodified_requirement(file, target)
    options, most = planning_options(with_deciding_kernels(request, needed), file.graph), request.most_work
    budget = request.budget
    if budget is None and request.available is not None:
        budget = max(request.available - needed.kept, 0)
    options = replace(options, capacity=None)
    curve = curve_of(file.graph, options, most_work=most, budget=budget, seconds=request.seconds)
    refused = (f"{target.runtime.name} would not run it: {refusal}" for refusal in needed.refusals)
    return replace(curve, remarks=(*curve.remarks, *refused))
