"""`explain`: why a model needs the memory that it needs, and what would lower it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan.answers.explanation import Advice, Compression, Explanation
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.settled_requests import answers_paths
from modelplan.questions.alternatives import (
    open_on_target,
    requested_plan,
    unmodified_plan,
    unmodified_requirement,
    usual_options,
)
from modelplan.questions.explaining.compressing import compressed_weights, compression
from modelplan.questions.explaining.decoded_files import arena_of_compressed
from modelplan.questions.explaining.peaks import peak_of
from modelplan.questions.explaining.ranking import advice
from modelplan.questions.explaining.subjects import Measure, measured, subject_of
from modelplan.questions.model_request import ModelRequest, page_options, target_of, with_deciding_kernels
from modelplan.questions.session_needs import begin_measuring, session_asked, sized_by_session, with_other_settings
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import read_tflite

if TYPE_CHECKING:
    from modelplan.answers.page_views import Page


@dataclass(frozen=True, slots=True)
class ExplainRequest(ModelRequest):
    """Asks why a model file needs its memory, and what would lower that.

    Args:
        seconds: for trying changes; None: as much work as on any other machine. Those that are not tried are named.
        what_if: compressions whose saving is asked for: compress=weights:int4 and so on; sizes only.
    """

    seconds: float | None = None
    what_if: tuple[str, ...] = ()


@answers_paths(ExplainRequest)
def explain(request: ExplainRequest) -> Explanation:
    """Why a model file needs the memory that it needs: its peak, and the changes that would lower it.

    Args:
        request: the file, what it runs on, how it is planned, and how long changes may be tried.

    Returns:
        The requirement, the peak with all that is alive there, and changes with the bytes that plans of them save.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the request names what there is not, or combines what does not go together.
        BrokenPlanError: the file carries a plan by which an operator would read what it should not.
    """
    *_, explanation = explanation_stages(request)
    return explanation


def explanation_stages(request: ExplainRequest, report: Report = report_nothing) -> Iterator[Explanation]:
    """The explanation without any change as soon as the need and the peak are known, then all of it.

    `report` is called with a line for each change as it is known.
    """
    asked = session_asked(request)
    deadline = None if request.seconds is None else time.monotonic() + request.seconds
    begin_measuring(request)
    request, file, target = open_on_target(request)
    requirement = unmodified_requirement(file, target)
    request = with_deciding_kernels(request, requirement)
    runs_on = target_of(request, file.graph)
    options = usual_options(request, file, runs_on)
    unmodified = unmodified_plan(file, runs_on, requirement, request.target)
    plan = requested_plan(file, options, unmodified)
    explained = plan if request.asks_for_plan else unmodified
    what_if = () if requirement.refusals else tuple(_compressions(request, file, target))
    session = sized_by_session(file, target, requirement, asked)
    first = Explanation(
        file.path,
        with_other_settings(file, target, session, asked),
        peak_of(explained),
        Advice(()),
        request.available,
        what_if,
        file=file,
        explained=explained,
        plan=plan,
        unmodified=unmodified,
    )
    yield first
    if not session.refusals:
        subject, rows = subject_of(file, target, deadline), target.runtime.name == C.name
        # Rows of plain C are no plan of whole tensors to change, but it has other forms.
        start = Measure(requirement.arena, requirement.head, whole=True) if rows else measured(subject)
        yield replace(first, advice=advice(subject, start, report=report, alone=rows))


def _compressions(request: ExplainRequest, file: ModelFile, target: Target) -> Iterator[Compression]:
    """What `what_if` asks about."""
    for asked in request.what_if:
        name, _, form = asked.partition("=")
        if name != "compress":
            raise RequestError(f"--what-if {asked[:60]}: expected compress=FORM")
        yield _with_arena(compression(file.graph, target.runtime, form), file, target)


def _with_arena(estimate: Compression, file: ModelFile, target: Target) -> Compression:
    """The same with TFLM's arena before and after, where TFLM has operators that unpack such weights."""
    graph, runtime = file.graph, target.runtime
    if runtime.name != TFLM.name or graph.format != "tflite":
        return estimate
    model = read_tflite(file.content, file.path)
    if len(model.subgraphs[0].tensors) != len(graph.tensors) or model.decodes:
        return estimate
    small, how = compressed_weights(graph, estimate.name), estimate.name.partition(":")[2]
    after = arena_of_compressed(model, small, how, target.abi, runtime.kernels)
    if after is None:
        return estimate
    before = arena(replace(model, plan=()), target.abi, runtime.kernels).size()
    return replace(
        estimate, arena_before=before, arena_after=after.arena, region=after.region, arena_beside=after.with_region
    )


def explanation_page(request: ExplainRequest, explanation: Explanation) -> Page:
    """The page of the explained plan, with the suggestions among its figures."""
    from modelplan.questions.pages.plan_views import explained_page

    options = page_options(request, explanation.file, explanation.needed)
    return explained_page(options, explanation)
