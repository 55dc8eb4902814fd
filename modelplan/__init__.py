"""modelplan plans the memory of neural networks before they meet the device.

graph = load("model.tflite")
answer = plan(graph)
print(render(answer, ".txt"))
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from modelplan.primitives.version import __version__ as __version__

if TYPE_CHECKING:
    from modelplan.answers.model_difference import Difference
    from modelplan.answers.saved_plan import read
    from modelplan.answers.shared_plan import SharedPlan
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
    from modelplan.planning.aliasing import storages
    from modelplan.planning.allocators import place
    from modelplan.planning.lifetimes import buffers
    from modelplan.planning.pipeline import Footprint, Options, measure, plan
    from modelplan.planning.schedulers import order
    from modelplan.primitives.errors import BrokenPlanError, ModelError, ModelPlanError, RequestError
    from modelplan.questions.differences.models import diff
    from modelplan.questions.together.shared_memory import share_memory
    from modelplan.rewriting.striped_tflite.ladder import Ladder, fit

#: Where each public name lives; it is imported when it is first used, so that `import modelplan` costs nothing.
_HOMES = {
    name: module
    for module, names in {
        "answers.model_difference": "Difference",
        "answers.saved_plan": "read",
        "answers.shared_plan": "SharedPlan",
        "checking.referee": "check",
        "formats": "load",
        "model": (
            "Aliases Budget Buffer Graph Kind Member Merge Op Placement Plan Problem Progress Runtime Schedule Tensor"
        ),
        "model.bounds": "height load_bound",
        "outputs": "render",
        "outputs.notebook": "show",
        "planning.aliasing": "storages",
        "planning.allocators": "place",
        "planning.lifetimes": "buffers",
        "planning.pipeline": "Footprint Options measure plan",
        "planning.schedulers": "order",
        "primitives.errors": "BrokenPlanError ModelError ModelPlanError RequestError",
        "questions.differences.models": "diff",
        "questions.together.shared_memory": "share_memory",
        "rewriting.striped_tflite.ladder": "Ladder fit",
    }.items()
    for name in names.split()
}

__all__ = [
    "Aliases", "BrokenPlanError", "Budget", "Buffer", "Difference", "Footprint", "Graph", "Kind", "Ladder",
    "Member", "Merge", "ModelError", "ModelPlanError", "Op", "Options", "Placement", "Plan", "Problem", "Progress",
    "RequestError", "Runtime", "Schedule", "SharedPlan", "Tensor", "buffers", "check", "diff", "fit", "height",
    "load", "load_bound", "measure", "order", "place", "plan", "read", "render", "share_memory", "show", "storages",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'modelplan' has no attribute {name!r}")
    return getattr(import_module(f"modelplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


if "IPython" in sys.modules:
    from modelplan.outputs.notebook import register

    register()
