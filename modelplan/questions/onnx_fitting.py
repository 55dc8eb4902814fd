"""`fit`: .onnx files rewritten so that their sessions fit, on an unmodified ONNX Runtime."""

from __future__ import annotations

from dataclasses import field

from modelplan.formats import load_model
from modelplan.primitives.errors import RefusedModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.questions.fed_inputs import fed_shapes
from modelplan.rewriting.striped_onnx import ladder
from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, OnnxLadder
from modelplan.runtimes.ort.measuring import OTHER_INPUTS, SessionRefusedError, check_measurable


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOnnxRequest(SettledRequest, OnnxGoal):
    """Asks for settings of a session, an order and stripes with which an .onnx file needs less, measured.

    Args:
        path: the file.
        budget: bytes of the run that needs most, under the best settings; None asks for the least.
        settings: how the session runs.
        fixed: names of settings that are kept; the others may be changed.
        max_macs: multiply-accumulates that may be added, as a share of the model's.
        tolerance: of outputs, in units of the last place of their largest value.
        without: rungs to skip: "settings", "order", "split".
        effort: how far the search for stripes looks.
        dims: extents that the file leaves open, as for `load`.
        shapes: shapes that the file leaves open, as for `load`.
        values: values of inputs, as for `load`.
        feeds: the path of an .npz file with inputs; empty for none.
        seconds: after which the best so far counts; None: no limit. What is found by then depends on the machine.
    """

    path: str = field(kw_only=False)
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    seconds: float | None = None


@answers_paths(FitOnnxRequest)
def fit_onnx(request: FitOnnxRequest, progress: Report = report_nothing) -> OnnxLadder:
    """The rungs for an .onnx file, each measured on ONNX Runtime, up to the first that meets the budget.

    Args:
        request: the file, the budget, and what may change.
        progress: is called with a line now and then.

    Returns:
        The ladder; the rung that it chose has the settings, and the rewritten file where there is one.

    Raises:
        ModelError: the file cannot be read, or ONNX Runtime does not run it.
        RequestError: a rung that there is not, or ONNX Runtime cannot be measured here.
    """
    check_measurable()
    given = request.dims, request.shapes, request.values
    shapes = fed_shapes(request.path, request.feeds, given) if request.feeds else request.shapes
    graph = load_model(request.path, request.dims, shapes, request.values)
    try:
        return ladder.climb(request.path, graph, request, progress, request.seconds)
    except SessionRefusedError as problem:
        raise RefusedModelError(request.path, [str(problem)], [OTHER_INPUTS]) from None
