"""Plans read from files: a packed .tflite, a plan as JSON, a CSV with offsets, a C header with a BufferPlan."""

from collections.abc import Callable, Sequence
from pathlib import Path

from modelplan.answers import saved_plan
from modelplan.checking.verifier.concurrency import check_streams
from modelplan.checking.verifier.subject import (
    Subject,
    check_scratch,
    offline_subject,
    plan_subject,
    shim_subject,
    table_subject,
)
from modelplan.formats import load_model
from modelplan.formats.buffer_table import read_buffer_plan
from modelplan.formats.problem_csv import read_solution
from modelplan.formats.whole_files import fingerprint, read_model, read_text
from modelplan.model import Graph, Overlap, Plan
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.runtimes import runtime, with_kernels
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.file import FileModel, load_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, with_library
from modelplan.runtimes.tflm.metadata import kernels_made_for


def load_subject(
    path: Path,
    model: Path | None = None,
    kernels: str | None = None,
    runtime_name: str | None = None,
    overlaps_of: Callable[[Graph], Sequence[Overlap]] = lambda _graph: (),
) -> tuple[Subject, Path | None]:
    """The plan in the file `path`, and the model file that it can be run from.

    A .tflite carries its plan itself; the others are for `model`. `kernels` says whose scratch TFLM adds to a .tflite
    or a header, and a CSV for it must have; None: those that a .tflite says its plan is for, else all, and reference
    kernels for a header or a CSV. A CSV holds for the runtime `runtime_name`, with the overlaps that
    `overlaps_of` declares.

    Raises:
        RequestError: an unknown kind of file, or a model is needed.
        ModelError: a file cannot be read or is not what its suffix says.
        BrokenPlanError: the plan does not fit the model at all, was made for another file, or is above its capacity.
    """
    suffix, own = path.suffix.lower(), with_library(kernels, "reference")
    if suffix == ".tflite":
        file = load_tflite(path)
        return offline_subject(file, with_library(kernels, kernels_of_plan(file))), path
    if suffix == ".json":
        plan = saved_plan.read(read_text(path), str(path))
        _check_fits(plan, path)
        check_streams(plan)
        if model:
            _check_made_for(plan, path, model)
        runnable = model is not None and model.suffix.lower() == ".tflite"
        return plan_subject(plan, load_tflite(model) if model and runnable else None), model
    if suffix not in (".csv", ".h"):
        raise RequestError(f"{path}: no plan is read from {suffix!r}; expected .tflite, .json, .csv or .h")
    if model is None:
        raise RequestError(f"{path} does not say which model it is for; give --model")
    if suffix == ".h":
        places = read_buffer_plan(path)
        return shim_subject(load_tflite(model), places, own), model
    graph = load_model(model)
    problem, placement = read_solution(path)
    if placement is None:
        raise ModelError(f"{path}: has no column offset")
    used = runtime(runtime_name, graph.format)
    used = with_kernels(used, own) if library_of(own) in used.library_names else used
    subject = table_subject(graph, problem, placement, used, overlaps_of(graph))
    check_scratch(subject, graph, used)
    return subject, model


def kernels_of_plan(file: FileModel) -> str:
    """The kernels that a file says its plan is for, else all.

    Raises:
        ModelError: what the file says of its plan cannot be read.
    """
    return kernels_made_for(file.data, file.name) or TFLM.usual_kernels


def _check_fits(plan: Plan, path: Path) -> None:
    """Refuses a plan that is above its own capacity, which a planner may answer but no memory can hold."""
    ends = zip(plan.placement.offsets.tolist(), plan.problem.size.tolist(), strict=True)
    needed, capacity = max((at + size for at, size in ends if size), default=0), plan.problem.capacity
    if capacity is not None and needed > capacity:
        raise BrokenPlanError(f"{path}: the plan takes {needed} bytes, its capacity is {capacity}")


def _check_made_for(plan: Plan, path: Path, model: Path) -> None:
    """Refuses a plan that was made for another file than `model`, also for an older version of it."""
    made_for, digest = plan.graph.fingerprint, fingerprint(read_model(model))
    if not made_for:
        raise BrokenPlanError(f"{path}: does not say which file it was made for, so not whether that is {model}")
    if made_for != digest:
        raise BrokenPlanError(
            f"{path}: was made for {plan.graph.name!r} with SHA-256 {made_for[:16]}...,"
            f" but {model} has {digest[:16]}..."
        )
