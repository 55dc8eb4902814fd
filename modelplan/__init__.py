"""modelplan plans the memory of neural networks before they meet the device.

graph = load("model.tflite")
answer = plan(graph)
print(render(answer, ".txt"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from modelplan.aliasing import storages
    from modelplan.allocators import place
    from modelplan.bounds import height, load_bound
    from modelplan.differences.findings import Difference
    from modelplan.differences.models import diff
    from modelplan.errors import BrokenPlanError, ModelError, ModelPlanError, RequestError
    from modelplan.lifetimes import buffers
    from modelplan.loaders import load
    from modelplan.outputs import render
    from modelplan.outputs.notebook import show
    from modelplan.pipeline import Footprint, Options, measure, plan
    from modelplan.referee import check
    from modelplan.rewriting.ladder import Ladder, fit
    from modelplan.saved_plan import read
    from modelplan.schedulers import order
    from modelplan.together.shared_memory import share_memory
    from modelplan.together.shared_plan import SharedPlan
    from modelplan.types import (
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

#: Where each public name lives; it is imported when it is first used, so that `import modelplan` costs nothing.
_HOMES = {
    "storages": "aliasing", "place": "allocators", "height": "bounds", "load_bound": "bounds",
    "BrokenPlanError": "errors", "ModelError": "errors", "ModelPlanError": "errors", "RequestError": "errors",
    "buffers": "lifetimes", "load": "loaders", "render": "outputs", "show": "outputs.notebook", "read": "saved_plan",
    "Footprint": "pipeline", "Options": "pipeline", "measure": "pipeline", "plan": "pipeline",
    "check": "referee", "order": "schedulers",
    "Difference": "differences.findings", "diff": "differences.models",
    "Ladder": "rewriting.ladder", "fit": "rewriting.ladder",
    "SharedPlan": "together.shared_plan", "share_memory": "together.shared_memory",
    "Aliases": "types", "Budget": "types", "Buffer": "types", "Graph": "types", "Kind": "types", "Member": "types",
    "Merge": "types", "Op": "types", "Placement": "types", "Plan": "types", "Problem": "types",
    "Progress": "types", "Runtime": "types", "Schedule": "types", "Tensor": "types",
}  # fmt: skip

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
