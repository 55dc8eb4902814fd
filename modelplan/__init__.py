"""modelplan plans the memory of neural networks before they meet the device.

    graph = load("model.tflite")
    answer = plan(graph)
    print(render(answer, ".txt"))

A question about a model file is a frozen request, a function, and a frozen answer:

    analyze(AnalyzeRequest)            Analysis          what it needs on its runtime, why, what would need less
    target_verdicts(AnalyzeRequest)    TargetVerdicts    whether it fits each of several targets
    explain(ExplainRequest)            Explanation       its peak, and all changes that would lower it
    compare(CompareRequest)            AllocatorAnswers  every allocator on its plan, or on a table of buffers
    solve(SolveRequest)                Solution          where the buffers of a table, a .pte or a dump of XLA go
    diff(ModelRequest, ModelRequest)   Difference        what two models, or one in two settings, differ in
    check_budgets(CheckRequest)        Findings          whether models keep their budgets
    reorder(ModelRequest)              ReorderedFile     the file in the order that needs least
    pack(PackRequest)                  PackedFile        the file with a plan that TFLM follows
    place_in_memories(MemoriesRequest) RegionPlan        models in several memories
    spill(SpillRequest)                MovingPlan        contents that leave a memory and come back
    stream(StreamRequest)              StreamCurve       weights that come from a host
    recompute(RecomputeRequest)        Curve             values that are computed again
    sweep(SweepRequest)                SweepProgress     every run of a table from `table_of`, on a cluster
    choose_target(TargetRequest)       Chosen            a device, for `target` of the other requests
    check_layout(LayoutRequest)        LayoutCheck       whether models still fit a saved layout in several memories
    verify(VerifyRequest)              Proof             whether a plan is safe, or a rewritten file equal
    self_test(SelfTestRequest)         SelfTest          runs of a file that firmware repeats with its own kernels
    fit(FitRequest)                    Ladder            a .tflite file rewritten so that it fits TFLM
    fit_c(FitCRequest)                 CLadder           a .tflite file as plain C without an interpreter
    fit_onnx(FitOnnxRequest)           OnnxLadder        an .onnx file and settings with which a session needs less
    share_memory(ShareRequest)         SharedPlan        several models in one memory
    esphome_arena(EsphomeRequest)      EsphomeArena      the tensor arena in the manifest of a wake word

Every request about one model has the fields of ModelRequest, and Limits are what a CheckRequest holds models to;
`analysis_stages` answers as `analyze` does, part by part. Of a plan the stages are `load`, `storages`, `order`,
`buffers`, `place` and `check`; `plan` runs them all, `measure` sizes without a plan, `height` and `load_bound` are its
figures, `keep_offsets` stays near an earlier placement, `render` and `show` draw answers, `to_json`, `to_dict`
and `to_dataframe` give them as data, and `read` reads a saved
plan. Every error is a ModelPlanError: ModelError of a file, RequestError of a caller, BrokenPlanError of a plan.

The records of a plan:

    Graph, Tensor, Op, Kind            a model: tensors of a kind (such as activation or constant), and operators
    Runtime                            what runs it: alignment, sharing, kernels, scratch
    Options, Budget, Progress          how `plan` goes about it, how long it may search, and how far a search is
    Aliases, Merge, Member             which tensors share bytes, why, and where each lies in its buffer
    Schedule                           the operators in order, with the peak of live bytes and its bound
    Problem, Buffer                    what has to be placed: sizes, lifetimes, alignments, pins, a capacity
    Placement                          an offset for each buffer, and a lower bound
    Plan, Footprint                    all of that together, or its height, bound and work alone

`help(modelplan.Plan)` tells the fields of a record, and so on for each; `modelplan.__all__` has all names.
"""

import sys
from typing import TYPE_CHECKING, Any

from modelplan.primitives.showing_answers import show_with
from modelplan.primitives.version import __version__ as __version__

if TYPE_CHECKING:
    from modelplan.answers.analysis import Analysis
    from modelplan.answers.check_outcomes import Findings, Limits
    from modelplan.answers.explanation import Explanation
    from modelplan.answers.file_changes import EsphomeArena, ReorderedFile
    from modelplan.answers.fit_of_targets import TargetVerdicts
    from modelplan.answers.model_difference import Difference
    from modelplan.answers.moving_layout import LayoutCheck, MovingPlan, StreamCurve
    from modelplan.answers.placement_answers import AllocatorAnswers, Solution
    from modelplan.answers.proof_outcomes import Proof, SelfTest
    from modelplan.answers.recomputation import Curve
    from modelplan.answers.region_plan import RegionPlan
    from modelplan.answers.saved_plan import read
    from modelplan.answers.shared_plan import SharedPlan
    from modelplan.answers.sweep_summary import SweepProgress
    from modelplan.checking.referee import check
    from modelplan.formats import load
    from modelplan.model import (
        Aliases,
        Budget,
        Buffer,
        Graph,
        Kind,
        Member,
        Merge,
        Op,
        Placement,
        Plan,
        Problem,
        Progress,
        Runtime,
        Schedule,
        Tensor,
    )
    from modelplan.model.bounds import height, load_bound
    from modelplan.outputs import render
    from modelplan.outputs.notebook import show
    from modelplan.outputs.plain_data import to_dataframe, to_dict, to_json
    from modelplan.plain_c.ladder import CLadder
    from modelplan.planning.aliasing import storages
    from modelplan.planning.allocators import place
    from modelplan.planning.keeping import keep_offsets
    from modelplan.planning.lifetimes import buffers
    from modelplan.planning.pipeline import Footprint, Options, measure, plan
    from modelplan.planning.schedulers import order
    from modelplan.primitives.errors import BrokenPlanError, ModelError, ModelPlanError, RequestError
    from modelplan.questions.analyzing import AnalyzeRequest, analysis_stages, analyze
    from modelplan.questions.budgets.budget_checks import CheckRequest, check_budgets
    from modelplan.questions.c_fitting import FitCRequest, fit_c
    from modelplan.questions.comparing_allocators import CompareRequest, compare
    from modelplan.questions.differences.models import diff
    from modelplan.questions.esphome_manifest import EsphomeRequest, esphome_arena
    from modelplan.questions.explaining.explanations import ExplainRequest, explain
    from modelplan.questions.file_rewrites import PackedFile, PackRequest, pack, reorder
    from modelplan.questions.memories.rechecking import LayoutRequest, check_layout
    from modelplan.questions.memories.region_requests import (
        MemoriesRequest,
        SpillRequest,
        StreamRequest,
        place_in_memories,
        spill,
        stream,
    )
    from modelplan.questions.model_fitting import FitRequest, fit
    from modelplan.questions.model_request import ModelRequest
    from modelplan.questions.onnx_fitting import FitOnnxRequest, fit_onnx
    from modelplan.questions.recomputing import RecomputeRequest, recompute
    from modelplan.questions.self_testing import SelfTestRequest, self_test
    from modelplan.questions.sizing_for_targets import target_verdicts
    from modelplan.questions.solving import SolveRequest, solve
    from modelplan.questions.sweeps.sweep_file import table_of
    from modelplan.questions.sweeps.sweep_request import SweepRequest, sweep
    from modelplan.questions.target_request import TargetRequest, choose_target
    from modelplan.questions.together.parts import ShareRequest
    from modelplan.questions.together.shared_memory import share_memory
    from modelplan.questions.verifying import VerifyRequest, verify
    from modelplan.rewriting.striped_onnx.ladder import OnnxLadder
    from modelplan.rewriting.striped_tflite.ladder import Ladder
    from modelplan.targets.choosing import Chosen

#: Where each public name lives; it is imported when it is first used, so that `import modelplan` costs nothing.
_HOMES = {
    name: module
    for module, names in {
        "answers.analysis": "Analysis",
        "answers.check_outcomes": "Findings Limits",
        "answers.placement_answers": "AllocatorAnswers Solution",
        "answers.explanation": "Explanation",
        "answers.model_difference": "Difference",
        "answers.moving_layout": "LayoutCheck MovingPlan StreamCurve",
        "answers.proof_outcomes": "Proof SelfTest",
        "answers.recomputation": "Curve",
        "answers.region_plan": "RegionPlan",
        "answers.file_changes": "EsphomeArena ReorderedFile",
        "answers.saved_plan": "read",
        "answers.shared_plan": "SharedPlan",
        "answers.sweep_summary": "SweepProgress",
        "answers.fit_of_targets": "TargetVerdicts",
        "checking.referee": "check",
        "formats": "load",
        "model": (
            "Aliases Budget Buffer Graph Kind Member Merge Op Placement Plan Problem Progress Runtime Schedule Tensor"
        ),
        "model.bounds": "height load_bound",
        "outputs": "render",
        "outputs.plain_data": "to_dataframe to_dict to_json",
        "outputs.notebook": "show",
        "planning.aliasing": "storages",
        "planning.allocators": "place",
        "planning.keeping": "keep_offsets",
        "planning.lifetimes": "buffers",
        "planning.pipeline": "Footprint Options measure plan",
        "planning.schedulers": "order",
        "primitives.errors": "BrokenPlanError ModelError ModelPlanError RequestError",
        "questions.analyzing": "AnalyzeRequest analysis_stages analyze",
        "questions.budgets.budget_checks": "CheckRequest check_budgets",
        "questions.c_fitting": "FitCRequest fit_c",
        "questions.comparing_allocators": "CompareRequest compare",
        "questions.differences.models": "diff",
        "questions.esphome_manifest": "EsphomeRequest esphome_arena",
        "questions.explaining.explanations": "ExplainRequest explain",
        "questions.file_rewrites": "PackRequest PackedFile pack reorder",
        "questions.model_fitting": "FitRequest fit",
        "questions.onnx_fitting": "FitOnnxRequest fit_onnx",
        "questions.memories.rechecking": "LayoutRequest check_layout",
        "questions.memories.region_requests": (
            "MemoriesRequest SpillRequest StreamRequest place_in_memories spill stream"
        ),
        "questions.model_request": "ModelRequest",
        "questions.recomputing": "RecomputeRequest recompute",
        "questions.self_testing": "SelfTestRequest self_test",
        "questions.solving": "SolveRequest solve",
        "questions.sweeps.sweep_file": "table_of",
        "questions.sweeps.sweep_request": "SweepRequest sweep",
        "questions.target_request": "TargetRequest choose_target",
        "questions.sizing_for_targets": "target_verdicts",
        "questions.together.parts": "ShareRequest",
        "questions.together.shared_memory": "share_memory",
        "questions.verifying": "VerifyRequest verify",
        "plain_c.ladder": "CLadder",
        "rewriting.striped_onnx.ladder": "OnnxLadder",
        "rewriting.striped_tflite.ladder": "Ladder",
        "targets.choosing": "Chosen",
    }.items()
    for name in names.split()
}

__all__ = [
    "Aliases", "AllocatorAnswers", "Analysis", "AnalyzeRequest", "BrokenPlanError", "Budget", "Buffer", "CLadder",
    "CheckRequest", "Chosen", "CompareRequest", "Curve", "Difference", "EsphomeArena", "EsphomeRequest",
    "ExplainRequest", "Explanation", "Findings", "FitCRequest", "FitOnnxRequest", "FitRequest", "Footprint",
    "Graph", "Kind", "Ladder", "LayoutCheck", "LayoutRequest", "Limits", "Member", "MemoriesRequest", "Merge",
    "ModelError", "ModelPlanError", "ModelRequest", "MovingPlan", "OnnxLadder", "Op", "Options", "PackRequest",
    "PackedFile", "Placement", "Plan", "Problem", "Progress", "Proof", "RecomputeRequest", "RegionPlan",
    "ReorderedFile", "RequestError", "Runtime", "Schedule", "SelfTest", "SelfTestRequest", "ShareRequest",
    "SharedPlan", "Solution", "SolveRequest", "SpillRequest", "StreamCurve", "StreamRequest", "SweepProgress",
    "SweepRequest", "TargetRequest", "TargetVerdicts", "Tensor", "VerifyRequest", "analysis_stages", "analyze",
    "buffers", "check", "check_budgets", "check_layout", "choose_target", "compare", "diff", "esphome_arena",
    "explain", "fit", "fit_c", "fit_onnx", "height", "keep_offsets", "load", "load_bound", "measure", "order",
    "pack", "place", "place_in_memories", "plan", "read", "recompute", "render", "reorder", "self_test",
    "share_memory", "show", "solve", "spill", "storages", "stream", "sweep", "table_of", "target_verdicts",
    "to_dataframe", "to_dict", "to_json", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'modelplan' has no attribute {name!r}")
    return getattr(import_module(f"modelplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    # The functions: `help(modelplan)` prints what stands here with all of its inside, which buries the table above.
    return [name for name in __all__ if name.islower()]


def _notebook(function: str) -> Any:
    """A function that `modelplan.outputs.notebook` has, imported when it is called."""
    from importlib import import_module

    return lambda answer: getattr(import_module("modelplan.outputs.notebook"), function)(answer)


show_with(_notebook("words_of"), _notebook("html_or_nothing"))

if "IPython" in sys.modules:
    from modelplan.outputs.notebook import register

    register()
