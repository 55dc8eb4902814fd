"""From a run to its row: `measured` is a pure function of the run and of the file; a memo keeps what runs share."""

import hashlib
import platform
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from modelplan.model import Requirement, Runtime, bounds
from modelplan.model.model_file import ModelFile, Target
from modelplan.ops.run_costs import graph_macs
from modelplan.planning import allocators, pipeline
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import ModelError, ModelPlanError
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.model_request import unnamed_kernels
from modelplan.questions.session_needs import require_host
from modelplan.questions.sweeps.run_table import USUAL, SweepRun
from modelplan.questions.sweeps.sweep_rows import SweepRow, row_of
from modelplan.runtimes import runtime as runtime_named

Answer = TypeVar("Answer")
#: Models whose answers are kept; runs of one model follow each other.
_MODELS = 2
_USUAL_ABI = "32"
_LONGEST_ERROR = 1000


@dataclass(slots=True)
class Memo:
    """The answers for the last models: each question is computed once, errors included."""

    answers: OrderedDict[str, dict[Hashable, Any]] = field(default_factory=OrderedDict)

    def cached(self, model: str, key: Hashable, make: Callable[[], Answer]) -> tuple[Answer, float]:
        """The cached result of `make` with the seconds its computation took; raises its error again."""
        known = self.answers.setdefault(model, {})
        self.answers.move_to_end(model)
        while len(self.answers) > _MODELS:
            self.answers.popitem(last=False)
        if key not in known:
            begin = time.process_time()
            try:
                known[key] = make(), time.process_time() - begin
            except ModelPlanError as problem:
                known[key] = problem
        if isinstance(known[key], ModelPlanError):
            raise known[key]
        answer: tuple[Answer, float] = known[key]
        return answer


def measured(run: SweepRun, memo: Memo) -> SweepRow:
    """The row of a run; what modelplan refuses and what fails in it are rows too."""
    try:
        facts = _facts(run, memo)
        error = facts.pop("error", "")
        return row_of(run, "refused" if error else "done", error, facts)
    except ModelPlanError as problem:
        return row_of(run, "refused", _one_line(f"{type(problem).__name__}: {problem}"), _versions())
    except Exception as problem:  # noqa: BLE001  a mistake in modelplan is a row, not the end of the sweep
        return row_of(run, "failed", _one_line(f"{type(problem).__name__}: {problem}"), _versions())


def _facts(run: SweepRun, memo: Memo) -> dict[str, Any]:
    """The columns of a run that has an answer."""
    left_open = (run.dims, run.shapes, run.values)
    file, load_seconds = memo.cached(run.model, ("file", *left_open), lambda: _load(run))
    runtime = _runtime(run, file)
    abi = run.target_abi or _USUAL_ABI
    setting = (*left_open, runtime.name, runtime.kernels)
    target = Target(runtime, abi)
    require_host(file, target, run.target, run.target_abi)
    need, arena_seconds = memo.cached(run.model, ("arena", abi, *setting), lambda: unmodified_requirement(file, target))
    options = _options(run, runtime, need)
    chosen = (options.schedule, options.alias, options.allocator, options.kernels)
    planned, plan_seconds = memo.cached(run.model, ("plan", *setting, *chosen), lambda: _planned(file, options))
    macs, _ = memo.cached(run.model, ("macs", *left_open), lambda: graph_macs(file.graph))
    return {
        "format": file.graph.format,
        "file_bytes": len(file.content),
        "operators": len(file.graph.ops),
        "macs": macs,
        "used_runtime": runtime.name,
        "used_kernels": runtime.kernels,
        "used_alias": pipeline.alias_mode(options, runtime),
        "used_allocator": options.allocator,
        "abi": abi if need.macro else "",
        **planned,
        **_sizes(run, need, planned["height"], planned["runtime_height"]),
        "load_seconds": load_seconds,
        "arena_seconds": arena_seconds,
        "plan_seconds": plan_seconds,
        **_versions(),
    }


def _load(run: SweepRun) -> ModelFile:
    """The model, which has to be the file that the table was made of."""
    file = load_file(run.model, run.dims, run.shapes, run.values)
    digest = hashlib.sha256(file.content).hexdigest()
    if digest != run.sha256:
        raise ModelError(f"{run.model}: its SHA-256 is {digest[:12]}..., but that of the table is {run.sha256[:12]}...")
    return file


def _runtime(run: SweepRun, file: ModelFile) -> Runtime:
    """The runtime with the kernels of the run, else the target's, else those of the plan in the file, else all."""
    named = None if run.runtime == USUAL else run.runtime
    kernels = run.kernels
    if kernels == USUAL:
        kernels = unnamed_kernels(runtime_named(named, file.graph.format), file, run.target_kernels)
    return pipeline.configured_runtime(file.graph, Options(named, kernels=kernels))


def _options(run: SweepRun, runtime: Runtime, needed: Requirement) -> Options:
    """What the run asks the pipeline for; a plan is made for one library, of all for the one that needs most."""
    return Options(
        runtime.name,
        kernels=needed.kernels or runtime.kernels,
        schedule=Options().schedule if run.schedule == USUAL else run.schedule,
        alias=None if run.alias == USUAL else run.alias,
        allocator=allocators.DEFAULT if run.allocator == USUAL else run.allocator,
    )


def _planned(file: ModelFile, options: Options) -> dict[str, Any]:
    plan = pipeline.plan(file.graph, options)
    return {
        "runtime_height": plan.runtime_height,
        "height": bounds.height(plan.problem, plan.placement),
        "bound": plan.placement.lower_bound,
        "proof": plan.placement.ended,
        "order": plan.schedule.method,
        "order_peak": plan.schedule.peak,
        "order_bound": plan.schedule.lower_bound,
        "order_proof": plan.schedule.proof,
    }


def _sizes(run: SweepRun, needed: Requirement, height: int, runtime_height: int) -> dict[str, Any]:
    """What the unmodified file needs, and whether that and the plan fit the target.

    Where the head is not what the runtime plans for the graph by itself (a file with a plan of its own, several
    subgraphs), nothing is said of the arena with another plan.
    """
    if needed.refusals:
        fits = None if run.target_bytes is None else False
        return {"error": "; ".join(needed.refusals), "fits": fits, "plan_fits": fits}
    sizes = {"arena": needed.arena, "head": needed.head}
    if run.target_bytes is None:
        return sizes
    with_plan = needed.arena - needed.head + height
    plan_fits = with_plan <= run.target_bytes if needed.head == runtime_height else None
    fits_with = " ".join(needed.libraries_that_fit(run.target_bytes)) if needed.libraries else ""
    return {**sizes, "fits": needed.fits(run.target_bytes), "fits_with": fits_with, "plan_fits": plan_fits}


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__}


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_ERROR]
